"""Options of roz: the settings that it reads.

Rule: this module is imported at the start, so it does not import gRPC.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec


class PermissionRule(msgspec.Struct, frozen=True):
    """One rule of the server's tool policy, as clients see it."""

    tool_pattern: str
    policy: str
    category: str | None = None
    reason: str | None = None


def rule_for(rules: Sequence[PermissionRule], tool: str) -> PermissionRule:
    """Return the first rule that fits the name of a tool. A tool without a rule is allowed."""
    return next((rule for rule in rules if fnmatchcase(tool, rule.tool_pattern)), PermissionRule(tool, "allow"))


class RozOptions(msgspec.Struct, frozen=True):
    keepalive: float
    model: str
    models: tuple[str, ...]
    tool_policy: str
    context_tokens: int
    on_busy: str

    @property
    def model_names(self) -> list[str]:
        return [entry.rpartition("=")[0] or entry for entry in self.models]

    @property
    def permissions(self) -> list[PermissionRule]:
        return msgspec.json.decode(self.tool_policy, type=list[PermissionRule])
