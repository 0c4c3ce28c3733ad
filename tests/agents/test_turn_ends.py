"""Ends of turns: calls that are cut off, answers that are refused or repeated, new messages, and demands."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest
from _pytest.mark import ParameterSet
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    ResumeEntry,
    RunAgentInput,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from agui_container import RunContext
from agui_container.assistant.assistant import Assistant
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.engine.engine import Engine
from agui_container.ports import Item, RunInterrupted
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.cluster import LEASE_SECONDS
from agui_container.settings import Settings
from agui_container.testing import user_input
from agui_container.tools.policy import ToolPolicy
from agui_core.commands import ThreadsFork
from agui_core.turns import calls_of
from tests.agents import turns
from tests.agents.conftest import Serve
from tests.agents.turns import (
    EFFECTS,
    POLICY,
    Client,
    ServedClient,
    answer_all,
    answer_when_forgotten,
    asks,
    cut_off,
    entry,
    gathered,
    in_a_thread,
    in_order,
)
from tests.agents.turns_of_models import CallingModel, command
from tests.contexts import of_type
from tests.engine.doubles import caller, eventually, make_service
from tests.engine.replicas import Replicas, leases_of
from tests.run.test_recorder import beat


async def waiting_of(client: ServedClient) -> list[str]:
    return [each.id for each in await client.service.threads.waiting(caller(), client.thread_id)]


async def results_in(client: ServedClient) -> list[object]:
    messages = await client.service.threads.messages_since(caller(), client.thread_id, lambda _: False)
    return [message.content for message in messages if isinstance(message, ToolMessage)]


def is_stored(service: Engine) -> bool:
    return all(run.log.watermark == len(run.log) for run in service.registry.by_key.values())


def paying(amount: int) -> list[ParameterSet]:
    """Return an agent of each kind that pays, the assistant if the message says so."""
    steps = [f"pay {amount}"]
    return [
        pytest.param(Assistant(CallingModel(), turns.tools, policy=ToolPolicy.parse(POLICY)), id="assistant"),
        pytest.param(in_order(steps), id="function"),
        pytest.param(in_a_thread(steps), id="thread"),
    ]


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
@pytest.mark.parametrize("agent", paying(0))
async def test_an_approved_call_that_was_cut_off_has_a_result_that_says_so_and_is_not_run_again(
    serve: Serve, agent: object, how: str
) -> None:
    client = await serve(agent)
    await cut_off(client, how)


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(Assistant(CallingModel(), turns.tools), id="assistant"),
        pytest.param(in_order(["look 1", "look 0"]), id="function"),
        pytest.param(gathered(["look 1", "look 0"]), id="gathered"),
    ],
)
async def test_an_allowed_call_whose_process_died_reads_as_cut_off_in_the_next_turn(agent: object) -> None:
    EFFECTS.clear()
    replicas, settings = Replicas(), Settings(tool_policy=POLICY)
    named = {each.spec.name: each for each in turns.tools}
    here = await replicas.start(agent, settings, tools=named)
    client = Client(asks(here))
    run = asyncio.create_task(client.send(command(["look 1", "look 0", "look 2"], is_gathered=False)))
    await eventually(lambda: "look 0" in EFFECTS and is_stored(here))
    there = await replicas.start(agent, settings, tools=named)
    await leases_of(there).renew()
    replicas.clock.advance(LEASE_SECONDS)
    await beat(leases_of(there))
    other = Client(asks(there), client.thread_id)
    await other.send("what now?")
    told = [event.content for event in of_type(other.events, ToolCallResultEvent)]
    assert told[0] == CUT_OFF
    assert CUT_OFF not in told[1:]
    messages = await there.threads.messages_since(caller(), client.thread_id, lambda _: False)
    results = [message.content for message in messages if isinstance(message, ToolMessage)]
    assert results[:2] == ["looked 1", CUT_OFF]
    await here.drain(0)
    await run
    await there.drain(0)


def choosy(answers: list[object]) -> object:
    """An agent that pays, and takes one answer to its question only."""

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        await ctx.call_tool("pay", {"amount": 1})
        if not input.resume:
            raise RunInterrupted([Interrupt(id="colour", reason="choice", message="Which colour?")])
        answers.append(input.resume[0].payload)
        if answers[-1] != "green":
            raise AppError(ErrorCode.VALIDATION_ERROR, "resume.0.payload: must be green.")
        yield "painted"

    return agent


async def test_a_question_whose_answer_the_agent_refuses_stays_open(serve: Serve) -> None:
    answers: list[object] = []
    client = await serve(choosy(answers))
    await client.send("go")
    await client.resume([entry(interrupt, "together") for interrupt in client.waiting])
    assert await waiting_of(client) == ["colour"]
    await client.resume([ResumeEntry(interrupt_id="colour", status="resolved", payload="red")])
    assert (client.outcome, await waiting_of(client)) == ("VALIDATION_ERROR", ["colour"])
    await client.resume([ResumeEntry(interrupt_id="colour", status="resolved", payload="green")])
    assert (client.text, answers, EFFECTS) == ("painted", ["red", "green"], ["pay 1"])
    assert await waiting_of(client) == []


@pytest.mark.parametrize("agent", [*paying(1), pytest.param(in_order(["ask"]), id="question")])
async def test_an_answer_whose_question_is_forgotten_is_refused(
    serve: Serve, agent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await serve(agent)
    await client.send("pay 1")
    await answer_when_forgotten(client, monkeypatch)


@pytest.mark.parametrize("agent", paying(1))
async def test_a_question_is_answered_on_its_thread_and_not_on_a_fork(serve: Serve, agent: object) -> None:
    client = await serve(agent)
    await client.send("pay 1")
    answers = [entry(interrupt, "together") for interrupt in client.waiting]
    threads = client.service.threads
    *_, last = await threads.messages_since(caller(), client.thread_id, lambda _: False)
    for effects in ([], ["pay 1"]):
        fork = await threads.answer(caller(), ThreadsFork(thread_id=client.thread_id, message_id=last.id))
        other = Client(client.ask, str(fork["threadId"]))
        await other.resume(answers)
        assert (other.outcome, EFFECTS) == ("VALIDATION_ERROR", effects)
        await client.resume(answers)
    assert EFFECTS == ["pay 1"]


@pytest.mark.parametrize("steps", [("ask",), ("pay 1", "ask")], ids=["question", "both"])
async def test_a_new_message_abandons_no_question(serve: Serve, steps: tuple[str, ...]) -> None:
    client = await serve(gathered(steps))
    await client.send("go")
    asked = [interrupt.id for interrupt in client.waiting]
    await client.send("what are you waiting for?")
    assert [interrupt.id for interrupt in client.waiting] == asked == await waiting_of(client)
    await answer_all(client, "together")
    assert client.outcome == "success"


async def edit_and_answer(client: ServedClient, how: str) -> None:
    await client.send(command(["pay 1"], is_gathered=False))
    answers = [entry(interrupt, how) for interrupt in client.waiting]
    edited = user_input(command(["look 1"], is_gathered=False))
    await client.run(edited.model_copy(update={"resume": answers}))


@pytest.mark.parametrize("agent", paying(1))
async def test_an_approved_call_whose_question_was_edited_away_is_put_back(serve: Serve, agent: object) -> None:
    client = await serve(agent)
    await edit_and_answer(client, "together")
    assert (client.outcome, EFFECTS) == ("success", ["pay 1"])
    assert client.text
    messages = await client.service.threads.messages_since(caller(), client.thread_id, lambda _: False)
    calls = [call.id for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls or ()]
    assert [each.tool_call_id for each in messages if isinstance(each, ToolMessage)] == calls
    assert await results_in(client) == ["paid 1"]


@pytest.mark.parametrize("how", ["denied", "cancelled"])
@pytest.mark.parametrize("agent", paying(1))
async def test_a_history_from_which_a_rejected_call_was_edited_away_is_answered_without_it(
    serve: Serve, agent: object, how: str
) -> None:
    client = await serve(agent)
    await edit_and_answer(client, how)
    if client.waiting:  # the agent begins anew, and asks again
        await client.resume([entry(interrupt, how) for interrupt in client.waiting])
    assert (client.outcome, [each for each in EFFECTS if each.startswith("pay")]) == ("success", [])
    assert client.text


async def test_a_call_after_the_end_of_the_run_does_not_start(serve: Serve) -> None:
    leftover: list[asyncio.Task[object]] = []
    has_ended = asyncio.Event()

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async def late() -> object:
            await has_ended.wait()
            return await ctx.call_tool("hang")

        leftover.append(asyncio.create_task(late()))
        yield str(await ctx.call_tool("pay", {"amount": 1}))

    client = await serve(agent)
    await client.send("go")
    has_ended.set()
    await asyncio.wait(leftover)
    assert isinstance(leftover[0].exception(), RunInterrupted)
    assert EFFECTS == []


def announcement(step: str) -> tuple[dict[str, int], Sequence[BaseEvent]]:
    """Return the arguments and the events of a call, with the only id that the model has."""
    arguments = {"amount": int(step.split()[1])}
    return arguments, [
        ToolCallStartEvent(tool_call_id="c", tool_call_name="pay"),
        ToolCallArgsEvent(tool_call_id="c", delta=json.dumps(arguments)),
        ToolCallEndEvent(tool_call_id="c"),
    ]


async def announce(steps: Sequence[str], input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Go on behind the results of the history, as agents of frameworks do."""
    for step in steps[sum(isinstance(message, ToolMessage) for message in input.messages) :]:
        arguments, events = announcement(step)
        for event in events:
            yield event
        content = await ctx.call_tool("pay", arguments, call_id="c")
        yield ToolCallResultEvent(message_id=ctx.new_id(), tool_call_id="c", content=content)
    yield "done"


async def announce_at_once(steps: Sequence[str], input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Make all calls in one answer. Make them again when called again, as a graph with a checkpoint does."""
    calls = [announcement(step) for step in steps]
    is_resumed = any(isinstance(message, ToolMessage) for message in input.messages)
    for event in () if is_resumed else [event for _, events in calls for event in events]:
        yield event
    await asyncio.gather(*(ctx.call_tool("pay", arguments, call_id="c") for arguments, _ in calls))
    yield "done"


@pytest.mark.parametrize(
    ("policy", "amounts"),
    [(POLICY, (1, 2, 3)), (POLICY, (1, 1, 1)), ("[]", (1, 1, 3))],
    ids=["in runs of their own", "equal ones in runs of their own", "in one run"],
)
async def test_calls_for_which_a_model_uses_one_id_have_an_id_each_in_the_history(
    policy: str, amounts: Sequence[int]
) -> None:
    EFFECTS.clear()
    steps = [f"pay {amount}" for amount in amounts]
    service = make_service(partial(announce, steps), Settings(tool_policy=policy), tools={"pay": turns.pay})
    client = Client(asks(service))
    await client.send("go")
    await answer_all(client, "together")
    messages = await service.threads.messages_since(caller(), client.thread_id, lambda _: False)
    made = {call.id: call.function.arguments for each in messages for call in calls_of(each)}
    results = {each.tool_call_id: each.content for each in messages if isinstance(each, ToolMessage)}
    assert (client.text, EFFECTS) == ("done", steps)
    ids = ["c", "c--2", "c--3"]
    assert [*made.items()] == [(id_, json.dumps({"amount": each})) for id_, each in zip(ids, amounts, strict=True)]
    assert [*results.items()] == [(id_, f"paid {each}") for id_, each in zip(ids, amounts, strict=True)]
    assert [each.role for each in messages] == ["user", *["assistant", "tool"] * 3, "assistant"]


@pytest.mark.parametrize("way", ["together", "one by one", "reversed"])
@pytest.mark.parametrize("amounts", [(1, 2), (1, 1)], ids=["calls", "equal calls"])
async def test_calls_of_one_answer_for_which_a_model_uses_one_id_are_asked_for_and_run_once_each(
    amounts: Sequence[int], way: str
) -> None:
    EFFECTS.clear()
    steps = [f"pay {amount}" for amount in amounts]
    agent = partial(announce_at_once, steps)
    service = make_service(agent, Settings(tool_policy=POLICY), tools={"pay": turns.pay})
    client = Client(asks(service))
    await client.send("go")
    assert [interrupt.tool_call_id for interrupt in client.waiting] == ["c", "c--2"]
    await answer_all(client, way)
    assert (client.outcome, client.text, sorted(EFFECTS)) == ("success", "done", steps)
    messages = await service.threads.messages_since(caller(), client.thread_id, lambda _: False)
    results = {each.tool_call_id: each.content for each in messages if isinstance(each, ToolMessage)}
    assert results == {"c": f"paid {amounts[0]}", "c--2": f"paid {amounts[1]}"}
