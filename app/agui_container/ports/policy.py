"""Permissions of tools, and the rules for the tool calls of a run, which hold for its subagents, too.

Rule: rules are only ever added to. No part of a run can take back what its caller or an assistant above it demands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Permission(StrEnum):
    """Permission to execute a tool: always, after a person's approval, or never."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


STRICTNESS = (Permission.ALLOW, Permission.ASK, Permission.DENY)
"""Permissions, the most lenient first."""


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """A permission and its reason. ``category`` is a group of tools that people see, such as ``physical``."""

    permission: Permission
    reason: str | None = None
    category: str | None = None


Policy = Callable[[str], PolicyDecision]
"""Function from the name of a tool to the decision on it."""


def allow_all(_tool_name: str) -> PolicyDecision:
    """Allow every tool. This is the policy if the operator sets no rules."""
    return PolicyDecision(Permission.ALLOW)


@dataclass(frozen=True, slots=True)
class CallRules:
    """Rules for the tool calls of a run.

    Attributes:
        policies: policies of the assistants that the run has passed through. The strictest decision counts.
        asks_always: True if every call that the server answers needs an approval, also one that cannot run.
        cancels_on_denial: True if a denied call ends the run as cancelled.
    """

    policies: tuple[Policy, ...] = ()
    asks_always: bool = False
    cancels_on_denial: bool = False

    def with_policy(self, policy: Policy) -> "CallRules":
        """Return the rules with one more policy, or the same rules if it adds nothing."""
        if policy is allow_all or policy in self.policies:
            return self
        return CallRules((*self.policies, policy), self.asks_always, self.cancels_on_denial)

    def with_demands(self, *, asks_always: bool, cancels_on_denial: bool) -> "CallRules":
        """Return the rules with the demands of a caller, or the same rules if there are none."""
        if not (asks_always or cancels_on_denial):
            return self
        return CallRules(self.policies, self.asks_always or asks_always, self.cancels_on_denial or cancels_on_denial)

    def decide(self, tool_name: str) -> PolicyDecision:
        """Return the strictest decision of the policies; of equally strict ones, the last, which is the nearest."""
        decisions = [policy(tool_name) for policy in reversed(self.policies)]
        return max(decisions, key=lambda it: STRICTNESS.index(it.permission), default=allow_all(tool_name))
