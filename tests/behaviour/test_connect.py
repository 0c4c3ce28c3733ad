"""A client that comes back with nothing to say sees its thread as it is, and nothing runs."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    StateSnapshotEvent,
)

from agui_container.ports import Item
from tests.behaviour.client import Client, outcome, text, types
from tests.behaviour.conversations import ClientThread, answer, interrupts
from tests.conftest import Connect
from tests.engine.doubles import ask, caller, eventually, forever

SHOWN = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]


async def agent_with_state(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    yield StateSnapshotEvent(snapshot={"step": 1})


async def run_and_store(client: Client, said: str = "hi") -> None:
    """Execute a run, and wait until its end is stored."""
    assert text(await client.run(ask(text=said))) == "hello"
    await eventually(lambda: not client.service.registry.lives)


@pytest.mark.wire
@pytest.mark.durable
@pytest.mark.platform
async def test_a_thread_is_shown_as_it_is(connect: Connect) -> None:
    client = await connect(agent_with_state)
    await run_and_store(client)
    _, messages, state, _ = events = await client.run(ask(run="r2", messages=[]))
    assert types(events) == SHOWN
    assert [message["content"] for message in messages["messages"]] == ["hi", "hello"]
    assert state["snapshot"] == {"step": 1}
    assert [run["runId"] for run in await client.service.runs.list(caller())] == ["r1"]


@pytest.mark.wire
async def test_a_thread_is_shown_beside_the_run_that_goes_on(connect: Connect) -> None:
    client = await connect(forever)
    stream = await client.start(ask())
    await stream.until("RUN_STARTED")
    events = await client.run(ask(run="r2", messages=[]))
    assert types(events) == SHOWN
    assert [message["content"] for message in events[1]["messages"]] == ["hi"]
    await client.cancel("t1", "r1")
    assert outcome(await stream.rest()) == "cancelled"


async def test_a_thread_that_no_event_can_hold_is_refused_for_what_it_is(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(agent_with_state)
    await run_and_store(client, "hi" * 1_000)
    with monkeypatch.context() as patched:
        patched.setattr("agui_container.engine.single_reader_runs.MAX_EVENT_BYTES", 1_000)
        started, refused = await client.run(ask(run="r2", messages=[]))
    assert (started["type"], refused["code"]) == ("RUN_STARTED", "PAYLOAD_TOO_LARGE")
    assert refused["message"] == "The thread is too large to be shown in one event."
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    kept = await client.command({"command": {"type": "threads.get", "threadId": "t1"}})
    assert [message["content"] for message in kept["messages"]] == ["hi" * 1_000, "hello"]


async def test_connecting_twice_at_once_shows_the_thread_twice_and_leaves_nothing(connect: Connect) -> None:
    client = await connect(agent_with_state)
    await run_and_store(client)
    memory = client.service.quota.log_memory
    before = (memory.logs, memory.used)
    both = await asyncio.gather(*(client.run(ask(run="again", messages=[])) for _ in range(2)))
    assert [types(events) for events in both] == [SHOWN, SHOWN]
    assert (memory.logs, memory.used) == before


async def test_an_agent_of_ones_own_may_speak_first(connect: Connect) -> None:
    async def greeter(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="messages", value=len(asked.messages))
        yield "Welcome."

    client = await connect(greeter)
    assert text(await client.run(ask(messages=[]))) == "Welcome."
    await eventually(lambda: not client.service.registry.lives)
    assert types(await client.run(ask(run="r2", messages=[]))) == SHOWN


async def test_the_assistant_has_nothing_to_say_to_nothing(thread: ClientThread) -> None:
    events = await thread.say()
    assert types(events) == SHOWN
    assert (events[1]["messages"], events[2]["snapshot"]) == ([], {})
    assert thread.prompts() == []
    listed = await thread.client.command({"command": {"type": "threads.list"}})
    assert thread.id not in [view["threadId"] for view in listed["threads"]]


COLOUR = Interrupt(id="i1", reason="choice", message="Which colour?")


async def ask_for_colour(asked: RunAgentInput) -> AsyncIterator[Item]:
    if asked.resume:
        yield f"You said {asked.resume[0].payload}."
        return
    outcome = RunFinishedInterruptOutcome(interrupts=[COLOUR])
    yield RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id, outcome=outcome)


async def test_the_last_interrupt_of_a_custom_agent_is_shown_until_it_is_answered(connect: Connect) -> None:
    client = await connect(ask_for_colour)
    asked = interrupts(await client.run(ask()))
    await eventually(lambda: not client.service.registry.lives)
    for run in ("r2", "r3"):
        events = await client.run(ask(run=run, messages=[]))
        assert (types(events), interrupts(events)) == (SHOWN, asked)
    answered = await client.run(ask(run="r4", messages=[], resume=[answer(asked[0], colour="Blue")]))
    assert text(answered) == "You said {'colour': 'Blue'}."
    await eventually(lambda: not client.service.registry.lives)
    assert outcome(await client.run(ask(run="r5", messages=[]))) == "success"


async def test_a_run_that_is_refused_leaves_the_turn_as_it_was(thread: ClientThread) -> None:
    await thread.say("calculate 6*7")
    (interrupt,) = interrupts(await thread.say('call pay {"amount": 5}'))
    assert outcome(await thread.resume(answer(interrupt, approved="yes"))) == "VALIDATION_ERROR"
    await eventually(lambda: not thread.client.service.registry.lives)
    view = await thread.client.command({"command": {"type": "threads.get", "threadId": thread.id}})
    assert view["status"] == "user_turn"
