"""Halves of surrogate pairs in what agents and tools send: joined where both follow each other, else U+FFFD."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agui_container import RunContext
from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item
from agui_container.protocol.errors import IllegalEvent
from agui_container.tools.function_tool import tool
from tests.agents.doubles import DONE, ScriptedModel, asks
from tests.behaviour.client import outcome, text
from tests.behaviour.conversations import ClientThread, answer, interrupts, results
from tests.behaviour.fake_models import FakeOffline
from tests.behaviour.goals import custom_values
from tests.behaviour.subagents import make_delegating_assistant, of_type
from tests.conftest import Connect
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

pytestmark = pytest.mark.durable

HIGH, LOW, SMILE = "\ud83d", "\ude00", "\U0001f600"
ASK_ALL: Json = {"approvals": {"ask": "all"}}


async def deltas(connect: Connect, *items: Item) -> list[str]:
    """Return the deltas that a client gets for the items of an agent."""

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for item in items:
            yield item

    events = await (await connect(agent)).run(ask())
    assert outcome(events) == "success"
    return [event["delta"] for event in events if "delta" in event]


TEXTS: dict[str, tuple[list[str], str]] = {
    "a half alone": ([f"a{HIGH}"], "a\ufffd"),
    "a second half alone": ([f"{LOW}a"], "\ufffda"),
    "both halves in one text": ([f"a{HIGH}{LOW}"], f"a{SMILE}"),
    "split over two texts": (["a", f"b{HIGH}", f"{LOW}c", "d"], f"ab{SMILE}cd"),
    "nothing but halves": ([HIGH, LOW, HIGH, LOW], SMILE * 2),
    "a half before other text": (["a", f"{HIGH}", "b", "c"], "a\ufffdbc"),
    "two first halves": ([HIGH, HIGH, LOW], f"\ufffd{SMILE}"),
}


@requirement("assistant.half-pairs")
@pytest.mark.parametrize(("texts", "whole"), TEXTS.values(), ids=TEXTS)
async def test_halves_in_the_text_of_an_agent_are_joined_or_replaced(
    connect: Connect, texts: list[str], whole: str
) -> None:
    assert "".join(await deltas(connect, *texts)) == whole


@requirement("assistant.half-pairs")
async def test_halves_in_the_events_of_an_agent_are_joined_within_their_message(connect: Connect) -> None:
    items = [
        TextMessageStartEvent(message_id="m", role="assistant"),
        *(TextMessageContentEvent(message_id="m", delta=each) for each in ("a", HIGH, LOW, HIGH)),
        TextMessageEndEvent(message_id="m"),
        ReasoningMessageStartEvent(message_id="r"),
        *(ReasoningMessageContentEvent(message_id="r", delta=each) for each in (f"b{HIGH}", LOW)),
        ReasoningMessageEndEvent(message_id="r"),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="t"),
        *(ToolCallArgsEvent(tool_call_id="c", delta=each) for each in ('{"x": "', HIGH, f'{LOW}"', "}")),
        ToolCallEndEvent(tool_call_id="c"),
        ToolCallResultEvent(message_id="t", tool_call_id="c", content=f"{LOW}!"),
    ]
    assert "".join(await deltas(connect, *items)) == f'a{SMILE}\ufffdb{SMILE}{{"x": "{SMILE}"}}'


def text_chunk(delta: str | None, message_id: str | None = None) -> Item:
    return TextMessageChunkEvent(message_id=message_id, delta=delta)


def arguments_chunk(delta: str, call_id: str | None = None) -> Item:
    return ToolCallChunkEvent(tool_call_id=call_id, tool_call_name=call_id and "t", delta=delta)


def reasoning_chunk(delta: str, message_id: str | None = None) -> Item:
    return ReasoningMessageChunkEvent(message_id=message_id, delta=delta)


CHUNKS: dict[str, tuple[list[Item], str]] = {
    "texts, the first of which has the id": ([text_chunk(HIGH, "m"), text_chunk(LOW)], SMILE),
    "texts that all have the id": ([text_chunk(f"a{HIGH}", "m"), text_chunk(f"{LOW}b", "m")], f"a{SMILE}b"),
    "an id that the second half has": (
        [text_chunk("a", "m"), text_chunk(HIGH), text_chunk(LOW, "m")],
        f"a{SMILE}",
    ),
    "a chunk without text in between": ([text_chunk(HIGH, "m"), text_chunk(None), text_chunk(LOW)], SMILE),
    "texts of two messages": ([text_chunk(HIGH, "m"), text_chunk(LOW, "n")], "\ufffd\ufffd"),
    "a text and arguments": ([text_chunk(HIGH, "m"), arguments_chunk('{"x": 1}', "c")], '\ufffd{"x": 1}'),
    "a text at the end": ([text_chunk(f"a{HIGH}", "m")], "a\ufffd"),
    "arguments": ([arguments_chunk(f'{{"x": "{HIGH}', "c"), arguments_chunk(f'{LOW}"}}')], f'{{"x": "{SMILE}"}}'),
    "reasoning": ([reasoning_chunk(HIGH, "r"), reasoning_chunk(LOW), reasoning_chunk("!")], f"{SMILE}!"),
    "a chunk and plain text of one message": ([text_chunk(HIGH, "m"), LOW], SMILE),
}


@requirement("assistant.half-pairs")
@pytest.mark.parametrize(("chunks", "whole"), CHUNKS.values(), ids=CHUNKS)
async def test_halves_in_consecutive_chunks_are_joined_within_their_message(
    connect: Connect, chunks: list[Item], whole: str
) -> None:
    assert "".join(await deltas(connect, *chunks)) == whole


@requirement("assistant.half-pairs")
async def test_half_a_symbol_in_a_refused_event_of_a_tool_does_not_fail_the_run(connect: Connect) -> None:
    @tool
    async def report(ctx: RunContext) -> str:
        """Send text for a message that nobody began."""
        with pytest.raises(IllegalEvent):
            ctx.emit(TextMessageContentEvent(message_id="unknown", delta=f"a{HIGH}"))
        return "reported"

    events = await (await connect(Assistant(OfflineModel(), (report,)))).run(ask(text="call report {}"))
    assert (results(events), outcome(events)) == (["reported"], "success")


@requirement("assistant.half-pairs")
async def test_a_result_and_a_custom_event_with_half_a_symbol_are_sent_and_kept(connect: Connect) -> None:
    @tool
    async def report(ctx: RunContext) -> str:
        """Send an event."""
        ctx.emit(CustomEvent(name="seen", value={HIGH: [f"a{LOW}"]}))
        return "reported"

    client = await connect(Assistant(OfflineModel(), (report,)))
    events = await client.run(ask(text="call report {}"))
    assert custom_values(events, "seen") == [{"\ufffd": ["a\ufffd"]}]
    assert results(events) == ["reported"]


@requirement("assistant.half-pairs")
async def test_a_call_whose_preview_has_half_a_symbol_can_be_approved(connect: Connect) -> None:
    @tool(preview=lambda: f"draws {HIGH}")
    def draw() -> str:
        """Draw."""
        return "drawn"

    thread = ClientThread(await connect(Assistant(ScriptedModel([asks("draw"), DONE]), (draw,))), FakeOffline())
    (interrupt,) = interrupts(await thread.say("go", forwardedProps=ASK_ALL))
    assert interrupt["metadata"]["preview"] == "draws \ufffd"
    events = await thread.resume(answer(interrupt, approved=True))
    assert (results(events), outcome(events)) == (["drawn"], "success")


@requirement("assistant.half-pairs")
async def test_a_subagent_that_splits_a_symbol_and_asks_with_half_of_one_continues(connect: Connect) -> None:
    async def agent(input: RunAgentInput) -> AsyncIterator[Item]:
        yield f"a{HIGH}"
        yield LOW
        if not input.resume:
            asked = RunFinishedInterruptOutcome(
                interrupts=[Interrupt(id="q", reason="choice", message=f"Which{HIGH}?")]
            )
            yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=asked)

    thread = ClientThread(await connect(make_delegating_assistant(agent)), FakeOffline())
    (interrupt,) = interrupts(await thread.say("delegate go"))
    assert interrupt["message"] == "Which\ufffd?"
    events = await thread.resume({"interruptId": "q", "status": "resolved", "payload": "x"})
    assert f"a{SMILE}" in text(events)
    assert of_type(events, "SUBAGENT_FINISHED")
