"""Random agents that mix legal and illegal items, raise, and are cancelled: the log is always a legal run.

A script is a random walk through AG-UI (``tests/protocol/random_walks``) with other things in between: strings,
chunks, things that are no events, events made behind pydantic's back, exceptions, and cancels from inside and outside.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import pytest
from ag_ui import core as ag
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agui_container.engine.engine import Engine
from agui_container.ports import RunContext
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.validator import RunSequence
from agui_core.expander import MAX_DELTA, IllegalEvent
from tests.engine.doubles import FakeClock, asking, caller, cancel_run, envelopes, eventually, make_service
from tests.protocol.random_walks import walk
from tests.protocol.samples import without_validation

OFFICIAL: TypeAdapter[ag.BaseEvent] = TypeAdapter(ag.Event)
IDS = ("m1", "m2", "x")
TAGS = (None, None, "s1", "s2")

FAST = settings(max_examples=60)


@pytest.fixture(autouse=True, scope="module")
def no_log_lines() -> Iterator[None]:
    """Turn off log lines, because thousands of agents fail here and their tracebacks take time."""
    logging.getLogger("agui_container.run.run").disabled = True
    yield
    logging.getLogger("agui_container.run.run").disabled = False


@dataclass(frozen=True)
class ScriptAction:
    """A step of a script that is not a yield."""

    what: str


def chunk(kind: int, key: str | None, tag: str | None, delta: str | None, role: str | None) -> ag.BaseEvent:
    if kind == 0:
        return ag.TextMessageChunkEvent.model_validate(
            {"messageId": key, "subagentRunId": tag, "delta": delta, "role": role}
        )
    if kind == 1:
        return ag.ReasoningMessageChunkEvent(message_id=key, subagent_run_id=tag, delta=delta)
    name = "tool" if role else None
    return ag.ToolCallChunkEvent(tool_call_id=key, tool_call_name=name, subagent_run_id=tag, delta=delta)


CHUNKS = st.builds(
    chunk,
    st.integers(0, 2),
    st.sampled_from((None, *IDS)),
    st.sampled_from(TAGS),
    st.sampled_from((None, "", "a", "x" * (MAX_DELTA + 1))),
    st.sampled_from((None, "assistant", "user")),
)
ODD = st.sampled_from(
    (
        None,
        7,
        {"type": "CUSTOM"},
        ag.CustomEvent(name="n", value=object()),
        without_validation(ag.TextMessageContentEvent, message_id="m1", delta=None),
        without_validation(ag.TextMessageStartEvent, message_id=["m1"], role="assistant"),
        without_validation(ag.TextMessageChunkEvent, message_id="m1", subagent_run_id=["s1"]),
        without_validation(ag.RunFinishedEvent, outcome="none", usage=7),
        without_validation(ag.RunErrorEvent, message=None),
        without_validation(ag.BaseEvent, type="CUSTOM"),
    )
)
DOINGS = st.sampled_from(("raise", "refuse", "exit", "cancel", "cancel soon", "pause", "usage", "time out"))
STRINGS = st.sampled_from(("", "a", "two words", "\N{GRINNING FACE}" * (MAX_DELTA + 1)))
BETWEEN = st.dictionaries(
    st.integers(0, 99), st.one_of(STRINGS, CHUNKS, CHUNKS, st.builds(ScriptAction, DOINGS), ODD), max_size=6
)
"""Items that replace the walk's events, by their index."""
PIECES = st.one_of(CHUNKS, CHUNKS, STRINGS, st.builds(ScriptAction, st.sampled_from(("pause", "cancel soon"))))
MIXES = st.integers(0, 20).flatmap(lambda length: st.lists(PIECES, min_size=length, max_size=length))


@dataclass
class ScriptRunner:
    """An agent that follows a script. A stubborn one continues after it was cancelled."""

    script: list[object]
    stubborn: bool
    cancel: Callable[[], object] = lambda: None
    time_out: Callable[[], object] = lambda: None

    async def run(self, _: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[object]:
        for step in self.script:
            try:
                if isinstance(step, ScriptAction):
                    await self.do(step.what, ctx)
                else:
                    yield step
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise

    async def do(self, what: str, ctx: RunContext) -> None:
        match what:
            case "raise":
                raise ValueError("hunter2")
            case "refuse":
                raise AppError(ErrorCode.MODEL_ERROR, "The model failed.")
            case "exit":
                raise SystemExit(1)
            case "cancel":
                self.cancel()
            case "cancel soon":
                asyncio.get_running_loop().call_soon(self.cancel)
            case "time out":
                self.time_out()
            case "usage":
                ctx.usage.append(ag.TokenUsage(model="m", input_tokens=1))
            case _:
                await asyncio.sleep(0)


def script_of_walk(seed: int, length: int, between: dict[int, object]) -> list[object]:
    """Return the events of a walk, some of them replaced by other steps."""
    return [between.get(at, event) for at, event in enumerate(islice(walk(seed), length))]


async def run(script: list[object], *, stubborn: bool = False) -> tuple[list[Envelope], Engine]:
    agent, clock = ScriptRunner(script, stubborn), FakeClock()
    service = make_service(agent, clock=clock)
    await service.open()
    agent.time_out = lambda: clock.advance(10_000)
    reader = await service.admit(asking(), caller())
    agent.cancel = lambda: cancel_run(service, reader)
    log = await envelopes(reader)
    await eventually(lambda: not service.registry.tasks)
    assert clock.timers == []
    return log, service


def check(log: list[Envelope]) -> None:
    """Check that the log is a legal run of the official protocol."""
    assert [envelope.seq for envelope in log] == list(range(1, len(log) + 1))
    assert {envelope.run_id for envelope in log} == {"r1"}
    events = [OFFICIAL.validate_json(envelope.data) for envelope in log]
    assert [event.type for event in events] == [envelope.type for envelope in log]
    first, *inner, last = events
    assert isinstance(first, ag.RunStartedEvent)
    assert (first.thread_id, first.run_id, first.protocol_version) == ("t1", "r1", "1.0")
    assert not any(isinstance(event, ag.RunStartedEvent | ag.RunFinishedEvent | ag.RunErrorEvent) for event in inner)
    assert isinstance(last, ag.RunFinishedEvent | ag.RunErrorEvent)
    sequence = RunSequence()
    for event in (first, *inner):
        sequence.feed(event)
    assert sequence.closers() == []
    sequence.feed(last)
    check_duties(inner, last)
    assert all(len(getattr(event, "delta", None) or "") <= MAX_DELTA for event in events)
    assert not any("CHUNK" in envelope.type for envelope in log)
    assert b"hunter2" not in b"".join(envelope.data for envelope in log)
    assert b":null" not in b"".join(envelope.data for envelope in (log[0], log[-1]))


def check_duties(inner: list[ag.BaseEvent], last: ag.BaseEvent) -> None:
    """Check that success names exactly the calls without a result, and that a finished run has its own ids."""
    if not isinstance(last, ag.RunFinishedEvent):
        return
    assert (last.thread_id, last.run_id) == ("t1", "r1")
    assert last.outcome is not None
    if last.outcome.type == "success":
        open_calls: dict[str, None] = {}
        for event in inner:
            if isinstance(event, ag.ToolCallStartEvent):
                open_calls[event.tool_call_id] = None
            elif isinstance(event, ag.ToolCallResultEvent):
                open_calls.pop(event.tool_call_id, None)
        assert (last.outcome.pending_tool_call_ids or []) == list(open_calls)


@FAST
@given(st.integers(0, 10**9), st.integers(0, 100), BETWEEN, st.booleans())
def test_any_agents_run_is_legal(seed: int, length: int, between: dict[int, object], stubborn: bool) -> None:  # noqa: FBT001
    log, service = asyncio.run(run(script_of_walk(seed, length, between), stubborn=stubborn))
    check(log)
    assert service.health.report()["status"] == "Healthy"


@FAST
@given(MIXES)
def test_any_mix_of_chunks_is_legal(script: list[object]) -> None:
    log, _ = asyncio.run(run(script))
    check(log)


@FAST
@given(st.lists(ODD, min_size=1, max_size=3))
def test_malformed_items_end_the_run_as_the_agents_error(script: list[object]) -> None:
    log, _ = asyncio.run(run(script))
    check(log)
    assert json.loads(log[-1].data)["code"] == "AGENT_ERROR"


async def test_a_call_that_is_refused_is_owed_by_nobody() -> None:
    service = make_service(ignore_illegal_event)
    log = await envelopes(await service.admit(asking(), caller()))
    assert "TOOL_CALL_START" not in [envelope.type for envelope in log]
    assert json.loads(log[-1].data)["outcome"] == {"type": "success"}


async def ignore_illegal_event(_: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[ag.BaseEvent]:
    """Emit a call that contradicts its parent message, and continue."""
    yield ag.TextMessageStartEvent(message_id="m1", subagent_run_id="s1")
    with pytest.raises(IllegalEvent):
        ctx.emit(
            ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="f", parent_message_id="m1", subagent_run_id="s2")
        )
