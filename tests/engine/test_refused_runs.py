"""Events of a tool that are refused: they open nothing, and an invalid one ends nothing."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import count

import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    RunAgentInput,
    RunStartedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallChunkEvent,
)

from agui_container.assistant.subagents import SubagentInvocation
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError
from agui_container.run.event_log import EventLog, Flusher, LogMemory
from agui_container.run.pipeline import EventPipeline
from agui_core.expander import IllegalEvent
from tests.engine.doubles import asking, caller, envelopes, log_memory, make_service
from tests.protocol.samples import without_validation

TEXT_OF_TWO = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
CALLED = [ToolCallChunkEvent(tool_call_id="c", tool_call_name="n", delta="{"), ToolCallChunkEvent(delta="}")]
OF_A_SUBAGENT = [
    TextMessageChunkEvent(message_id="m", delta="a", subagent_run_id="s"),
    TextMessageChunkEvent(delta="b", subagent_run_id="s"),
]
BAD_NAME = without_validation(TextMessageChunkEvent, message_id="m2", delta="x", name=5)
NOT_JSON = CustomEvent(name="n", value=object())

UNKNOWN = TextMessageContentEvent(message_id="unknown", delta="x")
"""Is refused by the order, when what is open has been ended for it."""
TEXT_OF_ONE = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]

IN_VAIN: dict[str, tuple[Sequence[Item], BaseEvent, Sequence[str]]] = {
    "a first chunk without an id, amid a call": (CALLED, TextMessageChunkEvent(delta="x"), CALL),
    "a first chunk without an id, amid text": (["a", "b"], ToolCallChunkEvent(delta="x"), TEXT_OF_TWO),
    "a start of what is open": (OF_A_SUBAGENT, TextMessageStartEvent(message_id="m"), TEXT_OF_TWO),
    "a chunk whose start is none": (["a", "b"], BAD_NAME, TEXT_OF_TWO),
    "what JSON cannot say": (["a", "b"], NOT_JSON, TEXT_OF_TWO),
    "a delta without a text": (
        ["a", "b"],
        without_validation(TextMessageContentEvent, message_id="m", delta=None),
        TEXT_OF_TWO,
    ),
}


def begin_pipeline(memory: LogMemory | None = None) -> tuple[EventPipeline, EventLog]:
    log, numbers = EventLog("r1", memory or log_memory(1 << 30, 1 << 30), Flusher()), count(1)
    pipeline = EventPipeline(lambda: f"id-{next(numbers)}", log)
    pipeline.start_from(asking(), set())
    pipeline.write(RunStartedEvent(thread_id="t1", run_id="r1"))
    pipeline.submit(SubagentStartedEvent(subagent_run_id="s", name="s"))
    return pipeline, log


def types(log: EventLog) -> list[str]:
    log.flush()
    return [event_type.value for event_type in log.batch(2, len(log)).types]


@pytest.mark.parametrize(("yielded", "sent", "expected"), IN_VAIN.values(), ids=IN_VAIN)
async def test_a_refused_event_leaves_open_streams_as_they_were(
    yielded: Sequence[Item], sent: BaseEvent, expected: Sequence[str]
) -> None:
    pipeline, log = begin_pipeline()
    pipeline.submit(yielded[0])
    with pytest.raises(IllegalEvent):
        pipeline.submit_from_tool(sent)
    pipeline.submit(yielded[1])
    pipeline.flush_chunks()
    assert types(log) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (NOT_JSON, TEXT_OF_TWO),
        (without_validation(TextMessageContentEvent, message_id="m", delta=None), TEXT_OF_TWO),
        (BAD_NAME, TEXT_OF_TWO),
        (UNKNOWN, TEXT_OF_ONE * 2),
    ],
)
async def test_a_refused_event_leaves_a_subagents_open_streams_as_they_were(
    sent: BaseEvent, expected: Sequence[str]
) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        subagent = SubagentInvocation("s", [], ctx)
        subagent.start("helper", "")
        subagent.emit("a")
        with pytest.raises(IllegalEvent):
            subagent.send(sent)
        subagent.emit("b")
        subagent.finish()
        yield ""

    log = await envelopes(await make_service(agent).admit(asking(), caller()))
    assert [event.type.value for event in log[2:-2]] == expected


@pytest.mark.parametrize("size", range(800, 2_400, 50))
async def test_every_message_that_a_limit_cut_off_is_closed(size: int) -> None:
    pipeline, log = begin_pipeline(log_memory(3_000, 1 << 30))
    pipeline.submit(CustomEvent(name="n", value="x" * size))
    with suppress(AppError):
        pipeline.submit(TextMessageChunkEvent(message_id="a", delta="aa"))
        pipeline.submit(TextMessageChunkEvent(message_id="b", delta="bb"))
    with suppress(AppError):
        pipeline.flush_chunks()
    pipeline.close(None)
    assert types(log).count("TEXT_MESSAGE_START") == types(log).count("TEXT_MESSAGE_END")
