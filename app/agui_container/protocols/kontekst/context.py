"""The context of a kontekst run in numbers: from the agent's snapshot, or else from the messages of the thread.

Rule: pure functions. Every sum of kontekst's page holds. The remaining tokens are the size minus the total, and are
negative if the context is overdrawn. A context whose size is unknown has the largest size that a field can hold,
because clients read 0 as an exhausted context and divide by it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import Message, UserMessage

from agui_container.conversation.tokens import MessageTokenCounter
from agui_container.ports.records import StoredMessage
from agui_container.protocol.parser import MESSAGE
from agui_container.protocols.gen.kontekst import kontekst_pb2 as pb

UNBOUNDED = 2**31 - 1
"""A context budget that no prompt exceeds, and the size of a context that is unknown: the largest ``int32``."""

Row = Mapping[str, Any]
"""A message as in the value of a ``context.snapshot`` event: ``role``, ``source`` and ``tokens``."""

HISTORY, RUN = "history", "run"
SOURCES = {RUN: "memory", HISTORY: "history"}

ROLES = {"reasoning": "assistant", "developer": "system", "activity": "assistant"}
"""Kontekst's roles for those roles of AG-UI that kontekst does not know."""

COUNTER = MessageTokenCounter()


def history_rows(messages: Sequence[StoredMessage]) -> list[Row]:
    return [_row(MESSAGE.validate_json(message.data), HISTORY) for message in messages]


class ThreadCount:
    """Estimated tokens of a thread, for agents that do not report their context."""

    def __init__(self, history: Sequence[Row] = (), prompt: str = "") -> None:
        self._rows = list(history)
        if prompt:
            self.add(UserMessage(id="", content=prompt))

    def add(self, message: Message) -> None:
        self._rows.append(_row(message, RUN))

    def snapshot(self) -> pb.ContextSnapshot:
        """The agent's own instructions and tools are unknown, so they count 0."""
        parts = {source: [row["tokens"] for row in self._rows if row["source"] == source] for source in SOURCES}
        history, run = parts[HISTORY], parts[RUN]
        value = {
            "contextSize": UNBOUNDED,
            "systemTokens": 0,
            "toolTokens": 0,
            "historyTokens": sum(history),
            "runTokens": sum(run),
            "totalTokens": sum(history) + sum(run),
            "historyMessages": len(history),
            "runMessages": len(run),
            "messages": self._rows,
        }
        return snapshot(value)


def _row(message: Message, source: str) -> Row:
    return {"role": message.role, "source": source, "tokens": COUNTER.count_message(message).tokens}


def snapshot(value: Row) -> pb.ContextSnapshot:
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
