"""The context of a kontekst run in numbers, from the snapshot of an agent that reports its context.

Rule: pure functions. Every sum of kontekst's page holds. The remaining tokens are the size minus the total, and are
negative if the context is overdrawn. A context whose size is unknown has the largest size that a field can hold,
because clients read 0 as an exhausted context and divide by it.
"""

from collections.abc import Mapping
from typing import Any

from agui_container.protocols.gen import kontekst_pb2 as pb

UNBOUNDED = 2**31 - 1
"""A context budget that no prompt exceeds, and the size of a context that is unknown: the largest ``int32``."""

SOURCES = {"run": "memory", "history": "history"}

ROLES = {"reasoning": "assistant", "developer": "system", "activity": "assistant"}
"""Kontekst's roles for those roles of AG-UI that kontekst does not know."""


def snapshot(value: Mapping[str, Any]) -> pb.ContextSnapshot:
    """Translate the value of a ``context.snapshot`` event. Messages that it only counts are one row for each role."""
    size = min(value["contextSize"], UNBOUNDED)
    fixed = value["systemTokens"] + value["toolTokens"] + value["runTokens"]
    rows = [pb.MessageStats(role="system", tokens=value["systemTokens"], source="system")]
    rows += [
        pb.MessageStats(role=ROLES.get(row["role"], row["role"]), tokens=row["tokens"], source=SOURCES[row["source"]])
        for row in (*value.get("olderMessages", ()), *value["messages"])
    ]
    return pb.ContextSnapshot(
        context_size=size,
        system_tokens=value["systemTokens"],
        tool_tokens=value["toolTokens"],
        history_tokens=value["historyTokens"],
        memory_tokens=value["runTokens"],
        total_tokens=value["totalTokens"],
        remaining_tokens=size - value["totalTokens"],
        history_messages=value["historyMessages"],
        memory_messages=value["runMessages"],
        total_messages=1 + value["historyMessages"] + value["runMessages"],
        history_budget=size - fixed,
        messages=rows,
    )


def read_snapshot(value: object) -> pb.ContextSnapshot | None:
    """Translate an event of an agent, or return None if an agent of somebody's own has given it another form."""
    if not isinstance(value, Mapping):
        return None
    try:
        return snapshot(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


UNKNOWN = pb.ContextSnapshot(
    context_size=UNBOUNDED, remaining_tokens=UNBOUNDED, history_budget=UNBOUNDED, total_messages=1
)
"""The context of an agent that does not report it."""
