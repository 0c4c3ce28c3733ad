"""Every event type of AG-UI goes through, as the agent yielded it."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    BaseEvent,
    EventType,
    RunAgentInput,
    TextMessageChunkEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from agui_container.ports import Item, MessageText, RunContext
from agui_container.protocol.encoder import encode
from tests.behaviour.client import types
from tests.conftest import Connect
from tests.engine.doubles import agent_of, ask
from tests.protocol.samples import CHUNKS, ERROR, FINISHED, INNER, SAMPLES, STARTED

EXPANDED = [
    *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
    *("REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"),
    *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
]


@pytest.mark.wire
@pytest.mark.platform
@pytest.mark.parametrize("last", [FINISHED, ERROR], ids=["finished", "error"])
async def test_all_event_types_pass_through(connect: Connect, last: BaseEvent) -> None:
    assert {event.type for event in SAMPLES} == set(EventType)
    client = await connect(agent_of(STARTED, *INNER, *CHUNKS, last))
    events = await client.run(ask())
    assert types(events) == ["RUN_STARTED", *(event.type for event in INNER), *EXPANDED, last.type]
    assert events[1 : 1 + len(INNER)] == [json.loads(encode(event)) for event in INNER]


@pytest.mark.wire
async def test_unknown_fields_of_events_are_kept(connect: Connect) -> None:
    extended = [
        type(event).model_validate({**event.model_dump(by_alias=True), "x-own": {"none": None}}) for event in INNER
    ]
    client = await connect(agent_of(*extended, FINISHED.model_copy(update={"x_own": 1})))
    events = await client.run(ask())
    assert all(event["x-own"] == {"none": None} for event in events[1:-1])
    assert len(events) == len(INNER) + 2


async def interleave_messages(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Yield text by its message's id, while tools in the background emit other messages."""
    yield TextMessageStartEvent(message_id="own", role="assistant")
    yield MessageText("own", "a")
    yield MessageText("own", "b")
    ctx.emit(TextMessageChunkEvent(message_id="progress", role="assistant", delta="50%"))
    yield MessageText("own", "c")
    ctx.emit(TextMessageStartEvent(message_id="other", role="assistant"))
    yield MessageText("own", "d")
    ctx.emit(MessageText("other", "e"))
    yield MessageText("own", "f" * 12_000)
    yield TextMessageEndEvent(message_id="other")
    yield TextMessageEndEvent(message_id="own")


async def test_text_by_its_messages_id_is_that_messages_whatever_else_is_said(connect: Connect) -> None:
    events = await (await connect(interleave_messages)).run(ask())
    said = defaultdict[str, str](str)
    for event in events:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            said[event["messageId"]] += event["delta"]
    assert said == {"own": "abcd" + "f" * 12_000, "progress": "50%", "other": "e"}
