"""Conversion between the turns of a thread and events of AgentCore Memory.

A turn is stored as a record: its changes of the thread, as ASCII JSON with bytes in base64. Merging all records, oldest
first, restores the thread.

An event has two kinds of items. ``conversational`` items are the texts of users, assistants and tools; the AWS console
and the strategies of long-term memory use them, and this module never reads them back. ``blob`` items are slices of the
record. The event's metadata identify the turn and the part of it.

Rule: a turn is one event if it fits. Otherwise it is several events, and an incomplete turn is ignored, so a tool call
is never read without its result. Events without this metadata are from other programs and are ignored.

Source: AgentCore's quotas and botocore's model: 100 items per event, 100,000 characters per text, 10 MB per event. The
limit of a blob is not documented, so a slice is at most as long as a text.
"""

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agui_container.log_values import format_fields
from agui_container.ports.records import StoredMessage, ThreadDelta, ThreadKey, ThreadNote, ThreadStatus

Item = Mapping[str, Any]
Event = Mapping[str, Any]

EARLIER = ""
"""Run id of messages that were read from the service, because their run is not known here."""

logger = logging.getLogger(__name__)


class ThreadHistory(Struct, frozen=True):
    """Stored turns of a thread, oldest first. ``is_complete`` is False if older turns were not read."""

    turns: Sequence[ThreadDelta]
    is_complete: bool = True


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal. Lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def load_turns(events: Iterable[Event]) -> list[ThreadDelta]:
    """Return the complete turns of a thread, oldest first. A record that cannot be read is logged and skipped."""
    turns: list[ThreadDelta] = []
    for name, text in read_records(events):
        try:
            turn = msgspec.convert(json.loads(text), ThreadDelta)
        except (ValueError, msgspec.ValidationError):
            logger.warning("turn record unreadable, skipped %s", format_fields({"turn": name}))
        else:
            turns.append(replace(turn, messages=[replace(message, run_id=EARLIER) for message in turn.messages]))
    return turns


def merge_turns(turns: Sequence[ThreadDelta]) -> ThreadDelta:
    """Return the whole thread after its turns, oldest first. There is at least one.

    A run that was active has ended, because its process has.
    """
    messages: dict[str, StoredMessage] = {}
    notes: dict[tuple[str, str], ThreadNote] = {}
    state = None
    for turn in turns:
        messages |= {message.id: message for message in turn.messages}
        if turn.order is not None:
            removed = messages.keys() - set(turn.order)
            messages = {name: messages[name] for name in turn.order if name in messages}
            notes = {key: note for key, note in notes.items() if note.message_id not in removed}
        notes |= {(note.kind, note.id): note for note in turn.notes}
        state = state if turn.state is None else turn.state
    last = turns[-1]
    status = ThreadStatus.USER_TURN if last.thread.status is ThreadStatus.AGENT_TURN else last.thread.status
    thread = replace(last.thread, status=status, active_run=None)
    return ThreadDelta(thread, [*messages.values()], [*messages], state, last.next, [*notes.values()], is_whole=True)


MAX_ITEMS = 100
MAX_TEXT = 100_000
MAX_EVENT_BYTES = 9_000_000
"""Size of an event's items as JSON. The service accepts 10 MB."""

MAX_CONVERSATION_ITEMS = 50
"""Maximum number of a turn's messages that memory strategies get: the last ones. The record contains all of them."""

TURN, PART, AT = "agui.turn", "agui.part", "agui.at"

_ROLES = {"user": "USER", "assistant": "ASSISTANT", "tool": "TOOL"}


class TurnPart(Struct, frozen=True):
    """One event to create. ``token`` makes its creation idempotent."""

    token: str
    items: Sequence[Item]
    metadata: Mapping[str, Mapping[str, str]]


def make_turn_parts(key: ThreadKey, turn: ThreadDelta, *, conversational: bool) -> list[TurnPart]:
    """Return the events of a turn: one if it fits, else several.

    Equal turns of a thread have the same tokens. With ``conversational`` memory strategies get the new messages.
    """
    text, at = json.dumps(msgspec.to_builtins(turn), separators=(",", ":")), f"{turn.thread.changed_at:.6f}"
    name = digest(json.dumps([*key, text]))
    new = [message for message in turn.messages if conversational and message.run_id != EARLIER]
    items = [item for message in new if (item := conversation_item(message)) is not None]
    pieces = [{"blob": text[start : start + MAX_TEXT]} for start in range(0, len(text), MAX_TEXT)]
    events = list(_pack_items([*items[-MAX_CONVERSATION_ITEMS:], *pieces]))
    return [
        TurnPart(f"{name}-{number}", part, _metadata(name, f"{number}/{len(events)}", at))
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
