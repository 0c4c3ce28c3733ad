"""Samples of chunks, and the expansion of a run's items."""

from itertools import count

import pytest
from ag_ui.core import BaseEvent, ReasoningMessageChunkEvent, TextMessageChunkEvent, ToolCallChunkEvent

from agui_container.ports import Item
from agui_core.expander import Expander

OPENERS: dict[type[BaseEvent], dict[str, str]] = {
    TextMessageChunkEvent: {"message_id": "k"},
    ToolCallChunkEvent: {"tool_call_id": "k", "tool_call_name": "tool"},
    ReasoningMessageChunkEvent: {"message_id": "k"},
}
each_kind = pytest.mark.parametrize("kind", OPENERS, ids=lambda kind: kind.__name__)


def expander() -> Expander:
    """Return an expander whose ids are id-1, id-2 and so on."""
    numbers = count(1)
    return Expander(lambda: f"id-{next(numbers)}")


def expanded(*items: Item, flush: bool = True) -> list[BaseEvent]:
    made = expander()
    events = [event for item in items for event in made.expand(item)]
    return [*events, *made.flush()] if flush else events


def first(kind: type[BaseEvent], **fields: object) -> BaseEvent:
    """Return the first chunk of a stream."""
    return kind(**{**OPENERS[kind], **fields})


def text(delta: str | None = None, key: str | None = None, owner: str | None = None, **fields: object) -> BaseEvent:
    return TextMessageChunkEvent(message_id=key, delta=delta, subagent_run_id=owner, **fields)


def kinds(events: list[BaseEvent]) -> list[type[BaseEvent]]:
    return [type(each) for each in events]
