"""What a turn did to its thread, as text that comes back as it was; and many of them as the thread.

Rule: a record is a ``Delta``: folding all of them, the oldest first, gives the thread. The text is ASCII, so nothing on
its way can change it, and JSON of messages is text within it: byte for byte, whatever it holds.
"""

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from app.ports.conversation import Change, Delta, StoredMessage, ThreadRecord, ThreadStatus
from app.ports.records import ThreadKey

EARLIER = ""
"""The run of messages that were read: one of another process."""


class Record(Struct, frozen=True):
    """New and changed messages, and the thread's facts after them.

    Attributes:
        order: ids of all messages; None where the writer did not know all of them.
        state: JSON; None where it has not changed.
    """

    thread: ThreadRecord
    messages: Sequence[StoredMessage]
    order: Sequence[str] | None = None
    state: bytes | None = None

    @classmethod
    def of(cls, delta: Delta, at: float, *, whole: bool) -> "Record":
        """What is new, written at a time. ``whole``: whether all messages of the thread are known here."""
        return cls(replace(delta.thread, changed_at=at), delta.messages, delta.order if whole else None, delta.state)


class History(Struct, frozen=True):
    """A thread as its records make it."""

    thread: ThreadRecord
    change: Change


def text_of(record: Record) -> str:
    """A record as text."""
    thread = record.thread
    return json.dumps(
        {
            "threadId": thread.key.thread_id,
            "title": thread.title,
            "status": thread.status,
            "createdAt": thread.created_at,
            "changedAt": thread.changed_at,
            "forkedFrom": thread.forked_from,
            "metadata": None if thread.metadata is None else _text(thread.metadata),
            "messages": [[message.id, _text(message.data)] for message in record.messages],
            "order": record.order,
            "state": None if record.state is None else _text(record.state),
        },
        separators=(",", ":"),
    )


def record_in(text: str, owner: str) -> Record:
    """What ``text_of`` wrote. Raises ``ValueError`` for anything else."""
    try:
        found = json.loads(text)
        thread = ThreadRecord(
            ThreadKey(owner, str(found["threadId"])),
            ThreadStatus(found["status"]),
            float(found["createdAt"]),
            float(found["changedAt"]),
            found["title"],
            forked_from=found["forkedFrom"] and (str(found["forkedFrom"][0]), str(found["forkedFrom"][1])),
            metadata=None if found.get("metadata") is None else _bytes(found["metadata"]),
        )
        messages = [StoredMessage(str(name), _bytes(data), EARLIER) for name, data in found["messages"]]
        state = None if found["state"] is None else _bytes(found["state"])
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ValueError("not a record") from error
    return Record(thread, messages, found["order"], state)


def folded(records: Iterable[Record]) -> History | None:
    """The thread that these made, the oldest first. A run that had not ended is over: its process is."""
    messages: dict[str, StoredMessage] = {}
    state, last = None, None
    for last in records:
        messages |= {message.id: message for message in last.messages}
        if last.order is not None:
            messages = {name: messages[name] for name in last.order if name in messages}
        state = state if last.state is None else last.state
    if last is None:
        return None
    idle = ThreadStatus.USER_TURN if last.thread.status is ThreadStatus.AGENT_TURN else last.thread.status
    return History(
        replace(last.thread, status=idle),
        Change(list(messages.values()), list(messages), state, last.thread.title),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
