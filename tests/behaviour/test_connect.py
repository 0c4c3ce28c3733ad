"""A client that comes back with nothing to say sees its thread as it is, and nothing runs."""

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

from agui_container.engine.admission.quota import Limit
from agui_container.ports import Item
from tests.behaviour.client import Client, outcome, text, types
from tests.behaviour.conversations import ClientThread, answer, interrupts
from tests.behaviour.goals import NOTE, goals
from tests.behaviour.subagents import team
from tests.conftest import Connect
from tests.engine.doubles import Json, ask, caller, eventually, forever
from tests.requirements import requirement

pytestmark = pytest.mark.durable

SHOWN = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]


async def agent_with_state(_: RunAgentInput) -> AsyncIterator[Item]:
    """Yield text and a state."""
    yield "hello"
    yield StateSnapshotEvent(snapshot={"step": 1})


async def run_and_store(client: Client, said: str = "hi") -> None:
    """Execute a run, and wait until its end is stored."""
    assert text(await client.run(ask(text=said))) == "hello"
    service = client.service
    await eventually(lambda: not service.registry.recorder_tasks)


@requirement("connect.shown")
async def test_a_thread_is_shown_as_it_is(connect: Connect) -> None:
    client = await connect(agent_with_state)
    await run_and_store(client)
    _, messages, state, _ = events = await client.run(ask(run="r2", messages=[]))
    assert types(events) == SHOWN
    assert [message["content"] for message in messages["messages"]] == ["hi", "hello"]
    assert state["snapshot"] == {"step": 1}
    assert [run["runId"] for run in await client.service.runs.list(caller())] == ["r1"]


@requirement("connect.shown")
async def test_a_thread_is_shown_beside_the_run_that_goes_on(connect: Connect) -> None:
    client = await connect(forever)
    stream = await client.start(ask())
    await stream.until("RUN_STARTED")
    events = await client.run(ask(run="r2", messages=[]))
    assert types(events) == SHOWN
    assert [message["content"] for message in events[1]["messages"]] == ["hi"]
    await client.cancel("t1", "r1")
    assert outcome(await stream.rest()) == "cancelled"


@requirement("connect.known")
async def test_ids_that_are_known_mean_that_run(connect: Connect) -> None:
    client = await connect(forever)
    first = await client.start(ask())
    await first.until("RUN_STARTED")
    again = await client.start(ask(messages=[]))
    await again.until("RUN_STARTED")
    await client.command({"command": {"type": "cancel", "runId": "r1"}})
    assert outcome(await first.rest()) == outcome(await again.rest()) == "cancelled"


@requirement("connect.shown")
async def test_a_thread_that_no_event_can_hold_is_refused_for_what_it_is(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(agent_with_state)
    await run_and_store(client, "hi" * 1_000)
    with monkeypatch.context() as patched:
        patched.setattr("agui_container.engine.threads.thread_snapshot.MAX_EVENT_BYTES", 1_000)
        started, refused = await client.run(ask(run="r2", messages=[]))
    assert (started["type"], refused["code"]) == ("RUN_STARTED", "PAYLOAD_TOO_LARGE")
    assert refused["message"] == "The thread is too large to be shown in one event."
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    kept = await client.command({"command": {"type": "threads.get", "threadId": "t1"}})
    assert [message["content"] for message in kept["messages"]] == ["hi" * 1_000, "hello"]


@requirement("connect.shown")
async def test_connecting_again_and_again_leaves_nothing(connect: Connect) -> None:
    client = await connect(agent_with_state)
    await run_and_store(client)
    before = client.service.quota.amounts[Limit.LOG_BYTES].used
    for _ in range(3):
        assert types(await client.run(ask(run="again", messages=[]))) == SHOWN
    assert client.service.quota.amounts[Limit.LOG_BYTES].used == before


@requirement("connect.first")
async def test_an_agent_of_ones_own_may_speak_first(connect: Connect) -> None:
    async def greeter(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="messages", value=len(asked.messages))
        yield "Welcome."

    client = await connect(greeter)
    assert text(await client.run(ask(messages=[]))) == "Welcome."
    service = client.service
    await eventually(lambda: not service.registry.recorder_tasks)
    assert types(await client.run(ask(run="r2", messages=[]))) == SHOWN


@requirement("connect.first")
async def test_an_agent_of_ones_own_may_speak_on_a_thread_that_says_nothing_yet(connect: Connect) -> None:
    async def marker(_: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="n", value=1)

    client = await connect(marker)
    for run in ("r1", "r2"):
        assert "CUSTOM" in types(await client.run(ask(run=run, messages=[])))
        service = client.service
        await eventually(lambda service=service: not service.registry.recorder_tasks)  # type: ignore[misc]


@requirement("connect.first")
async def test_the_assistant_has_nothing_to_say_to_nothing(thread: ClientThread) -> None:
    events = await thread.say()
    assert types(events) == SHOWN
    assert (events[1]["messages"], events[2]["snapshot"]) == ([], {})
    assert await thread.model.prompts() == []
    listed = await thread.client.command({"command": {"type": "threads.list"}})
    assert thread.id not in [view["threadId"] for view in listed["threads"]]


@requirement("connect.first", "connect.waiting")
async def test_an_assistant_of_ones_own_is_no_different(connect: Connect) -> None:
    client = await connect(team())
    assert types(await client.run(ask(messages=[]))) == SHOWN
    (asked,) = interrupts(await client.run(ask(run="r2", text='call pay {"amount": 5}')))
    service = client.service
    await eventually(lambda: not service.registry.recorder_tasks)
    events = await client.run(ask(run="r3", messages=[]))
    assert (types(events), interrupts(events)) == (SHOWN, [asked])


COLOUR = Interrupt(id="i1", reason="choice", message="Which colour?")


async def ask_for_colour(asked: RunAgentInput) -> AsyncIterator[Item]:
    """Ask for a colour until a run has an answer."""
    if asked.resume:
        yield f"You said {asked.resume[0].payload}."
        return
    outcome = RunFinishedInterruptOutcome(interrupts=[COLOUR])
    yield RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id, outcome=outcome)


@requirement("connect.waiting")
async def test_the_last_interrupt_of_a_custom_agent_is_shown_until_it_is_answered(connect: Connect) -> None:
    client = await connect(ask_for_colour)
    service = client.service
    asked = interrupts(await client.run(ask()))
    await eventually(lambda: not service.registry.recorder_tasks)
    for run in ("r2", "r3"):
        events = await client.run(ask(run=run, messages=[]))
        assert (types(events), interrupts(events)) == (SHOWN, asked)
    answered = await client.run(ask(run="r4", messages=[], resume=[answer(asked[0], colour="Blue")]))
    assert text(answered) == "You said {'colour': 'Blue'}."
    await eventually(lambda: not service.registry.recorder_tasks)
    assert outcome(await client.run(ask(run="r5", messages=[]))) == "success"


@requirement("connect.waiting")
async def test_an_open_interrupt_is_shown_and_can_be_answered(thread: ClientThread) -> None:
    asked = interrupts(await thread.say('call pay {"amount": 5}'))
    service = thread.client.service
    await eventually(lambda: not service.registry.recorder_tasks)
    back: Json = {"threadId": thread.id, "messages": [], "tools": []}
    shown = await thread.client.run({**back, "runId": "back"})
    assert types(shown) == SHOWN
    assert interrupts(shown) == asked
    events = await thread.resume(answer(asked[0], approved=True))
    assert text(events) == "The result of pay is paid 5."
    assert outcome(await thread.client.run({**back, "runId": "back-again"})) == "success"


@requirement("goal.refused")
async def test_a_run_that_is_refused_leaves_the_turn_as_it_was(thread: ClientThread) -> None:
    await thread.say("calculate 6*7")
    (interrupt,) = interrupts(await thread.say('call pay {"amount": 5}', forwardedProps=goals(NOTE)))
    assert outcome(await thread.resume(answer(interrupt, approved="yes"))) == "VALIDATION_ERROR"
    service = thread.client.service
    await eventually(lambda: not service.registry.recorder_tasks)
    view = await thread.client.command({"command": {"type": "threads.get", "threadId": thread.id}})
    assert view["status"] == "user_turn"
