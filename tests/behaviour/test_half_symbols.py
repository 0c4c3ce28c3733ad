"""Halves of surrogate pairs in what agents and tools send: joined where both follow each other, else U+FFFD."""

from collections.abc import AsyncIterator

import pytest
from ag_ui import core as ag

from agui_container import RunContext
from agui_container.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item
from agui_container.tools.function_tool import tool
from tests.behaviour.client import custom_values, outcome, text
from tests.behaviour.conversations import ClientThread, interrupts, results
from tests.behaviour.subagents import make_delegating_assistant, of_type
from tests.conftest import Connect
from tests.engine.doubles import agent_of, ask

HIGH, LOW, SMILE = "\ud83d", "\ude00", "\U0001f600"


async def deltas(connect: Connect, *items: Item) -> list[str]:
    events = await (await connect(agent_of(*items))).run(ask())
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


@pytest.mark.parametrize(("texts", "whole"), TEXTS.values(), ids=TEXTS)
async def test_halves_in_the_text_of_an_agent_are_joined_or_replaced(
    connect: Connect, texts: list[str], whole: str
) -> None:
    assert "".join(await deltas(connect, *texts)) == whole


async def test_halves_in_the_events_of_an_agent_are_joined_within_their_message(connect: Connect) -> None:
    items = [
        ag.TextMessageStartEvent(message_id="m", role="assistant"),
        *(ag.TextMessageContentEvent(message_id="m", delta=each) for each in ("a", HIGH, LOW, HIGH)),
        ag.TextMessageEndEvent(message_id="m"),
        ag.ReasoningMessageStartEvent(message_id="r"),
        *(ag.ReasoningMessageContentEvent(message_id="r", delta=each) for each in (f"b{HIGH}", LOW)),
        ag.ReasoningMessageEndEvent(message_id="r"),
        ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="t"),
        *(ag.ToolCallArgsEvent(tool_call_id="c", delta=each) for each in ('{"x": "', HIGH, f'{LOW}"', "}")),
        ag.ToolCallEndEvent(tool_call_id="c"),
        ag.ToolCallResultEvent(message_id="t", tool_call_id="c", content=f"{LOW}!"),
    ]
    assert "".join(await deltas(connect, *items)) == f'a{SMILE}\ufffdb{SMILE}{{"x": "{SMILE}"}}'


@pytest.mark.durable
async def test_a_result_and_a_custom_event_with_half_a_symbol_are_sent_and_kept(connect: Connect) -> None:
    @tool
    async def report(ctx: RunContext) -> str:
        """Send an event."""
        ctx.emit(ag.CustomEvent(name="seen", value={HIGH: [f"a{LOW}"]}))
        return "reported"

    client = await connect(Assistant(OfflineModel(), (report,)))
    events = await client.run(ask(text="call report {}"))
    assert custom_values(events, "seen") == [{"\ufffd": ["a\ufffd"]}]
    assert results(events) == ["reported"]


async def test_a_subagent_that_splits_a_symbol_and_asks_with_half_of_one_continues(connect: Connect) -> None:
    async def agent(input: ag.RunAgentInput) -> AsyncIterator[Item]:
        yield f"a{HIGH}"
        yield LOW
        if not input.resume:
            asked = ag.RunFinishedInterruptOutcome(
                interrupts=[ag.Interrupt(id="q", reason="choice", message=f"Which{HIGH}?")]
            )
            yield ag.RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=asked)

    thread = ClientThread(await connect(make_delegating_assistant(agent)))
    (interrupt,) = interrupts(await thread.say("delegate go"))
    assert interrupt["message"] == "Which\ufffd?"
    events = await thread.resume({"interruptId": "q", "status": "resolved", "payload": "x"})
    assert f"a{SMILE}" in text(events)
    assert of_type(events, "SUBAGENT_FINISHED")
