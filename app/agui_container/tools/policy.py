"""Permissions of tools: rules by tool name, of which the first match decides.

Rule: pure data and one lookup. A tool without a matching rule is allowed.

Source of the fields: ``PermissionRule`` in ``roz/v1/agent.proto``.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agui_container.ports import Permission, PolicyDecision


class PolicyError(ValueError):
    """The rules are invalid. The text is for the operator, at the start of the server."""


class PolicyRule(BaseModel):
    """One rule. ``tool_pattern`` is a tool name with the wildcards ``*``, ``?`` and ``[…]`` of ``fnmatch``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool_pattern: str
    policy: Literal["allow", "ask", "deny"]
    category: str | None = None
    reason: str | None = None


_RULES: TypeAdapter[tuple[PolicyRule, ...]] = TypeAdapter(tuple[PolicyRule, ...])


class ToolPolicy:
    """Rules in order. Implements ``ports.Policy``."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.rules = tuple(rules)

    @classmethod
    def parse(cls, text: str) -> "ToolPolicy":
        """Parse a JSON list of rules.

        Raises:
            PolicyError: the text is not a list of rules. Its text names the wrong field.
        """
        try:
            return cls(_RULES.validate_json(text))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "the list"
            raise PolicyError(f"{field}: {first['msg']}.") from None

    @property
    def asks(self) -> bool:
        return any(rule.policy == "ask" for rule in self.rules)

    def __call__(self, tool_name: str) -> PolicyDecision:
        for rule in self.rules:
            if fnmatchcase(tool_name, rule.tool_pattern):
                return PolicyDecision(Permission(rule.policy), reason=rule.reason, category=rule.category)
        return PolicyDecision(Permission.ALLOW)
