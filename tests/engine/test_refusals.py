"""What a tool sends in vain: it is refused, and what the agent has open goes on as if nothing had been sent."""

from collections.abc import AsyncIterator, Sequence
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

from app.core.chunks import Expander
from app.core.errors import AppError, Code, IllegalEvent
from app.engine.budget import Budget
from app.engine.funnel import Funnel
from app.engine.log import RunLog
from app.engine.policy import Limits
from app.ports import Item, RunContext
from tests.core.samples import forged
from tests.engine.doubles import asking, caller, envelopes, make_service
from tests.requirements import requirement

TEXT_OF_TWO = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
CALLED = [ToolCallChunkEvent(tool_call_id="c", tool_call_name="n", delta="{"), ToolCallChunkEvent(delta="}")]
OF_A_SUBAGENT = [
    TextMessageChunkEvent(message_id="m", delta="a", subagent_run_id="s"),
    TextMessageChunkEvent(delta="b", subagent_run_id="s"),
]
BAD_NAME = forged(TextMessageChunkEvent, message_id="m2", delta="x", name=5)
NOT_JSON = CustomEvent(name="n", value=object())

IN_VAIN: dict[str, tuple[Sequence[Item], BaseEvent, Sequence[str]]] = {
    "a first chunk without an id, amid a call": (CALLED, TextMessageChunkEvent(delta="x"), CALL),
    "a first chunk without an id, amid text": (["a", "b"], ToolCallChunkEvent(delta="x"), TEXT_OF_TWO),
    "a start of what is open": (OF_A_SUBAGENT, TextMessageStartEvent(message_id="m"), TEXT_OF_TWO),
    "a chunk whose start is none": (["a", "b"], BAD_NAME, TEXT_OF_TWO),
    "what JSON cannot say": (["a", "b"], NOT_JSON, TEXT_OF_TWO),
    "a delta without a text": (["a", "b"], forged(TextMessageContentEvent, message_id="m", delta=None), TEXT_OF_TWO),
}


def begun(budget: Budget | None = None) -> tuple[Funnel, RunLog]:
    """A run's funnel, and its log."""
    log, numbers = RunLog("r1", budget or Budget(1 << 30, 1 << 30)), count(1)
    funnel = Funnel(asking(), lambda: f"id-{next(numbers)}", log)
    funnel.write(RunStartedEvent(thread_id="t1", run_id="r1"))
    funnel.emit(SubagentStartedEvent(subagent_run_id="s", name="s"))
    return funnel, log


def types(log: RunLog) -> list[str]:
    """Those of the agent's own events."""
    return [event_type.value for event_type in log.batch(2, len(log)).types]


@requirement("run.refused")
@pytest.mark.parametrize(("yielded", "sent", "expected"), IN_VAIN.values(), ids=IN_VAIN)
def test_what_is_refused_leaves_what_is_open_as_it_was(
    yielded: Sequence[Item], sent: BaseEvent, expected: Sequence[str]
) -> None:
    funnel, log = begun()
    funnel.emit(yielded[0])
    with pytest.raises(IllegalEvent):
        funnel.send(sent)
    funnel.emit(yielded[1])
    funnel.flush()
    assert types(log) == expected


@requirement("run.refused")
def test_a_stream_that_was_ended_for_what_is_then_refused_is_ended() -> None:
    funnel, log = begun()
    funnel.emit("a")
    with pytest.raises(IllegalEvent):
        funnel.send(TextMessageContentEvent(message_id="unknown", delta="x"))  # by its order, which has its end before
    funnel.emit("b")
    funnel.flush()
    assert types(log) == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"] * 2


def test_a_stream_whose_start_was_accepted_is_open_whatever_becomes_of_its_text() -> None:
    expander = Expander(lambda: "id")
    [start, _] = expander.expand("a")
    expander.refused([start])
    assert [event.type.value for event in expander.flush()] == ["TEXT_MESSAGE_END"]
    expander.expand("a")
    expander.refused([])
    assert expander.flush() == []


@requirement("limit.size")
def test_a_tool_that_takes_no_notice_of_a_limit_does_not_exceed_it() -> None:
    funnel, log = begun(Budget(10_000, 1 << 30))
    for _ in range(8):
        funnel.send(CustomEvent(name="n", value="x" * 1_000))
    for _ in range(1_000):
        with pytest.raises(AppError) as told:
            funnel.send(CustomEvent(name="n", value="x" * 1_000))
        assert told.value.code is Code.RUN_LIMIT_EXCEEDED
    assert log.bytes < 12_000


@requirement("limit.size")
async def test_a_run_whose_tool_swallowed_its_limit_ends_with_it() -> None:
    async def heedless(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        for _number in range(100):
            try:
                ctx.emit(CustomEvent(name="n", value="x" * 1_000))
            except AppError:
                continue
        yield ""

    service = make_service(heedless, limits=Limits(run_bytes=10_000))
    log = await envelopes(service.start(asking(), caller()))
    assert b"RUN_LIMIT_EXCEEDED" in log[-1].data
    assert len(log) < 20
