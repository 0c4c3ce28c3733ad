"""What a turn did to its thread, as text that comes back as it was; and many of them as the thread.

Rule: a record is a ``Delta``: folding all of them, the oldest first, gives the thread. The text is ASCII, so nothing on
its way can change it, and JSON of messages is text within it: byte for byte, whatever it holds.

A turn as events of AgentCore Memory, and the turns that events hold.

An event has two kinds of items. ``conversational`` ones are what users, assistants and tools said, for people who look
and for strategies of long-term memory; nothing reads them back. ``blob`` ones are the turn's record, cut into pieces.
Metadata say which part of which turn an event is.

Rule: a turn is one event. Only what one event cannot take is several, and then all of them count or none, so a call
is never read without the result that came with it. Events without such metadata are somebody else's.

Source: 100 items of an event, 100,000 characters of a text, 10 MB of an event (AgentCore's quotas and botocore's
model). A blob's own limit is not documented; a piece is as long as a text may be.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agui_container.ports.records import Change, StoredMessage, ThreadDelta, ThreadKey, ThreadRecord, ThreadStatus

EARLIER = ""
"""The run of messages that were read: one of another process."""


class TurnRecord(Struct, frozen=True):
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
    def of(cls, delta: ThreadDelta, at: float, *, whole: bool) -> "TurnRecord":
        """What is new, written at a time. ``whole``: whether all messages of the thread are known here."""
        return cls(replace(delta.thread, changed_at=at), delta.messages, delta.order if whole else None, delta.state)


class ThreadHistory(Struct, frozen=True):
    """A thread as its records make it."""

    thread: ThreadRecord
    change: Change


def dump_record(record: TurnRecord) -> str:
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


def load_record(text: str, owner: str) -> TurnRecord:
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
    return TurnRecord(thread, messages, found["order"], state)


def fold_records(records: Iterable[TurnRecord]) -> ThreadHistory | None:
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
    return ThreadHistory(
        replace(last.thread, status=idle),
        Change(list(messages.values()), list(messages), state, last.thread.title),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


MAX_ITEMS = 100
MAX_TEXT = 100_000
MAX_EVENT_BYTES = 9_000_000
"""Of an event's items as they are sent; the service takes 10 MB."""

MAX_SPOKEN = 50
"""Messages of a turn that strategies are shown: the last ones. All of them are in the record."""

TURN, PART, AT = "agui.turn", "agui.part", "agui.at"

Item = Mapping[str, Any]
Event = Mapping[str, Any]

_ROLES = {"user": "USER", "assistant": "ASSISTANT", "tool": "TOOL"}


class TurnPart(Struct, frozen=True):
    """One event to be: a token that makes it once, its items, its metadata."""

    token: str
    items: Sequence[Item]
    metadata: Mapping[str, Mapping[str, str]]


def make_turn_parts(turn: str, at: float, messages: Sequence[StoredMessage], text: str) -> list[TurnPart]:
    """The events of a turn: one, as long as that is enough.

    Args:
        turn: what no other turn is called.
        at: when it ended, in Unix seconds; turns are read in this order.
        messages: those that strategies may be shown.
        text: the record, in ASCII.
    """
    spoken = [item for message in messages if (item := spoken_text(message)) is not None]
    pieces = [{"blob": text[start : start + MAX_TEXT]} for start in range(0, len(text), MAX_TEXT)]
    events = list(_packed([*spoken[-MAX_SPOKEN:], *pieces]))
    return [
        TurnPart(f"{turn}-{number}", items, _metadata(turn, f"{number}/{len(events)}", f"{at:.6f}"))
        for number, items in enumerate(events, 1)
    ]


def read_turn_records(events: Iterable[Event]) -> list[str]:
    """The records of all turns that are there in whole, the oldest first."""
    turns: defaultdict[tuple[float, str, int], dict[int, str]] = defaultdict(dict)
    for event in events:
        facts = {name: value.get("stringValue", "") for name, value in event.get("metadata", {}).items()}
        number, _, count = facts.get(PART, "").partition("/")
        try:
            turn = float(facts[AT]), facts[TURN], int(count)
            turns[turn][int(number)] = "".join(item["blob"] for item in event["payload"] if "blob" in item)
        except (KeyError, TypeError, ValueError):
            continue
    return [
        "".join(parts[at] for at in sorted(parts)) for turn, parts in sorted(turns.items()) if len(parts) == turn[2]
    ]


def spoken_text(message: StoredMessage) -> Item | None:
    """What people would say that this message says; None for one that says nothing, or is none of theirs."""
    try:
        found = json.loads(message.data)
        role, content = _ROLES.get(found.get("role")), found.get("content")
    except (AttributeError, TypeError, ValueError):
        return None
    text = content if isinstance(content, str) else "\n".join(_texts(content))
    if role is None or not text.strip():
        return None
    return {"conversational": {"content": {"text": text[:MAX_TEXT]}, "role": role}}


def _texts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def _packed(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    event: list[Item] = []
    size = 0
    for item in items:
        cost = len(json.dumps(item))
        if event and (len(event) == MAX_ITEMS or size + cost > MAX_EVENT_BYTES):
            yield event
            event, size = [], 0
        event.append(item)
        size += cost
    yield event


def _metadata(turn: str, part: str, at: str) -> Mapping[str, Mapping[str, str]]:
    return {name: {"stringValue": value} for name, value in ((TURN, turn), (PART, part), (AT, at))}
