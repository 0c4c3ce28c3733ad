"""Conversion between the turns of a thread and events of AgentCore Memory.

A turn is stored as a record: its changes of the thread, as ASCII JSON. Folding all records, oldest first, restores the
thread. Messages are strings within the JSON, so their bytes are preserved exactly.

An event has two kinds of items. ``conversational`` items are the texts of users, assistants and tools; the AWS console
and the strategies of long-term memory use them, and this module never reads them back. ``blob`` items are slices of the
record. The event's metadata identify the turn and the part of it.

Rule: a turn is one event if it fits. Otherwise it is several events, and an incomplete turn is ignored, so a tool call
is never read without its result. Events without this metadata are from other programs and are ignored.

Source: AgentCore's quotas and botocore's model: 100 items per event, 100,000 characters per text, 10 MB per event. The
limit of a blob is not documented, so a slice is at most as long as a text.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agui_container.ports.records import (
    Change,
    StoredMessage,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
)

EARLIER = ""
"""Run id of messages that were read from the service, because their run is not known here."""


class TurnRecord(Struct, frozen=True):
    """Changes of one turn, and the thread's record after it.

    Attributes:
        thread: record of the thread. ``changed_at`` is the time of the turn.
        messages: new and changed messages.
        order: ids of all messages; None if the order did not change or the writer did not know all messages.
        state: JSON; None if it did not change.
        notes: new and changed notes.
    """

    thread: ThreadRecord
    messages: Sequence[StoredMessage]
    order: Sequence[str] | None = None
    state: bytes | None = None
    notes: Sequence[ThreadNote] = ()


class ThreadHistory(Struct, frozen=True):
    """A stored thread as the change of an empty one. ``is_complete`` is False if older turns were not read."""

    thread: ThreadRecord
    change: Change
    is_complete: bool = True


def dump_record(record: TurnRecord) -> str:
    thread = record.thread
    return json.dumps(
        {
            "threadId": thread.key.thread_id,
            "title": thread.title,
            "status": thread.status,
            "createdAt": thread.created_at,
            "changedAt": thread.changed_at,
            "forkedFrom": thread.forked_from,
            "messages": [[message.id, _text(message.data)] for message in record.messages],
            "order": record.order,
            "state": None if record.state is None else _text(record.state),
            "notes": [[it.kind, it.id, _text(it.data), it.until, it.is_settled, it.message_id] for it in record.notes],
        },
        separators=(",", ":"),
    )


def load_record(text: str, owner: str) -> TurnRecord:
    """Return the record in a text that ``dump_record`` wrote. Raises ``ValueError`` for any other text."""
    try:
        found = json.loads(text)
        thread = ThreadRecord(
            ThreadKey(owner, str(found["threadId"])),
            ThreadStatus(found["status"]),
            float(found["createdAt"]),
            float(found["changedAt"]),
            found["title"],
            forked_from=found["forkedFrom"] and (str(found["forkedFrom"][0]), str(found["forkedFrom"][1])),
        )
        messages = [StoredMessage(str(name), _bytes(data), EARLIER) for name, data in found["messages"]]
        state = None if found["state"] is None else _bytes(found["state"])
        notes = [ThreadNote(kind, name, _bytes(data), *rest) for kind, name, data, *rest in found["notes"]]
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ValueError("not a record") from error
    return TurnRecord(thread, messages, found["order"], state, notes)


def merge_records(records: Iterable[TurnRecord], *, is_complete: bool = True) -> ThreadHistory | None:
    """Restore a thread from its records, oldest first. Return None if there are none.

    A run that was active has ended, because its process has.
    """
    messages: dict[str, StoredMessage] = {}
    notes: dict[tuple[str, str], ThreadNote] = {}
    state, last = None, None
    for last in records:
        messages |= {message.id: message for message in last.messages}
        if last.order is not None:
            removed = messages.keys() - set(last.order)
            messages = {name: messages[name] for name in last.order if name in messages}
            notes = {key: note for key, note in notes.items() if note.message_id not in removed}
        notes |= {(note.kind, note.id): note for note in last.notes}
        state = state if last.state is None else last.state
    if last is None:
        return None
    idle = ThreadStatus.USER_TURN if last.thread.status is ThreadStatus.AGENT_TURN else last.thread.status
    return ThreadHistory(
        replace(last.thread, status=idle),
        Change(list(messages.values()), list(messages), state, last.thread.title, list(notes.values())),
        is_complete,
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


MAX_ITEMS = 100
MAX_TEXT = 100_000
MAX_EVENT_BYTES = 9_000_000
"""Size of an event's items as JSON. The service accepts 10 MB."""

MAX_CONVERSATION_ITEMS = 50
"""Maximum number of a turn's messages that memory strategies get: the last ones. The record contains all of them."""

TURN, PART, AT = "agui.turn", "agui.part", "agui.at"

Item = Mapping[str, Any]
Event = Mapping[str, Any]

_ROLES = {"user": "USER", "assistant": "ASSISTANT", "tool": "TOOL"}


class TurnPart(Struct, frozen=True):
    """One event to create. ``token`` makes its creation idempotent."""

    token: str
    items: Sequence[Item]
    metadata: Mapping[str, Mapping[str, str]]


def make_turn_parts(turn: str, at: float, messages: Sequence[StoredMessage], text: str) -> list[TurnPart]:
    """Return the events of a turn: one if it fits, else several.

    Args:
        turn: unique id of the turn.
        at: end of the turn, in Unix seconds. Turns are sorted by it when they are read.
        messages: messages that memory strategies may get.
        text: the record, in ASCII.
    """
    conversational = [item for message in messages if (item := conversation_item(message)) is not None]
    pieces = [{"blob": text[start : start + MAX_TEXT]} for start in range(0, len(text), MAX_TEXT)]
    events = list(_pack_items([*conversational[-MAX_CONVERSATION_ITEMS:], *pieces]))
    return [
        TurnPart(f"{turn}-{number}", part, _metadata(turn, f"{number}/{len(events)}", f"{at:.6f}"))
        for number, part in enumerate(events, 1)
    ]


def read_records(events: Iterable[Event]) -> list[tuple[str, str]]:
    """Return the turn and the text of every complete record, oldest first."""
    records: defaultdict[tuple[float, str, int], dict[int, str]] = defaultdict(dict)
    for event in events:
        facts = {name: value.get("stringValue", "") for name, value in event.get("metadata", {}).items()}
        number, _, count = facts.get(PART, "").partition("/")
        try:
            records[float(facts[AT]), facts[TURN], int(count)][int(number)] = "".join(
                item["blob"] for item in event["payload"] if "blob" in item
            )
        except (KeyError, TypeError, ValueError):
            continue
    return [
        (name, "".join(parts[number] for number in sorted(parts)))
        for (_, name, count), parts in sorted(records.items())
        if len(parts) == count
    ]


def conversation_item(message: StoredMessage) -> Item | None:
    """Return the text of a message as a conversational item.

    Return None for a message without text or with a role other than user, assistant and tool.
    """
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


def _pack_items(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
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
