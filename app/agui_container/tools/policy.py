"""Who may run which tool: rules by name, the first match decides.

Rule: pure data and one lookup. Without a matching rule a tool is allowed. Source: ``PermissionRule`` of roz.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agui_container.ports import Permission, PolicyDecision


class PolicyError(ValueError):
    """The rules cannot be read. The text is for the operator, at the start."""


class PolicyRule(BaseModel):
    """One rule. ``tool_pattern`` is a tool's name with ``*``, ``?`` and ``[…]`` as in file names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool_pattern: str
    policy: Literal["allow", "ask", "deny"]
    category: str | None = None
    reason: str | None = None


_RULES: TypeAdapter[tuple[PolicyRule, ...]] = TypeAdapter(tuple[PolicyRule, ...])


class ToolPolicy:
    """Rules in order; callable as ``ports.Policy``."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.rules = tuple(rules)

    @classmethod
    def parse(cls, text: str) -> "ToolPolicy":
        """The rules in a JSON list. Raises ``PolicyError``."""
        try:
            return cls(_RULES.validate_json(text))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the list"
            raise PolicyError(f"{where}: {first['msg']}.") from None

    @property
    def asks(self) -> bool:
        """Whether there are tools that must be asked for."""
        return any(rule.policy == "ask" for rule in self.rules)

    def __call__(self, tool_name: str) -> PolicyDecision:
        """What the first matching rule says of this tool."""
        for rule in self.rules:
            if fnmatchcase(tool_name, rule.tool_pattern):
                return PolicyDecision(Permission(rule.policy), reason=rule.reason, category=rule.category)
        return PolicyDecision(Permission.ALLOW)
