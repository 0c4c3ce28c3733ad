"""A turn as events of AgentCore Memory, and the turns that events hold.

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

from app.ports.conversation import StoredMessage

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


class Part(Struct, frozen=True):
    """One event to be: a token that makes it once, its items, its metadata."""

    token: str
    items: Sequence[Item]
    metadata: Mapping[str, Mapping[str, str]]


def parts_of(turn: str, at: float, messages: Sequence[StoredMessage], text: str) -> list[Part]:
    """The events of a turn: one, as long as that is enough.

    Args:
        turn: what no other turn is called.
        at: when it ended, in Unix seconds; turns are read in this order.
        messages: those that strategies may be shown.
        text: the record, in ASCII.
    """
    spoken = [item for message in messages if (item := said(message)) is not None]
    pieces = [{"blob": text[start : start + MAX_TEXT]} for start in range(0, len(text), MAX_TEXT)]
    events = list(_packed([*spoken[-MAX_SPOKEN:], *pieces]))
    return [
        Part(f"{turn}-{number}", items, _metadata(turn, f"{number}/{len(events)}", f"{at:.6f}"))
        for number, items in enumerate(events, 1)
    ]


def texts_in(events: Iterable[Event]) -> list[str]:
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


def said(message: StoredMessage) -> Item | None:
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
