"""A replay finds the calls of its turn however long a question waits, and whatever the calls have asked."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from time import monotonic

import pytest
from ag_ui.core import Interrupt, RunAgentInput, ToolCallResultEvent

from agui_container import RunContext, ToolError, tool
from agui_container.agents.as_agent import as_agent
from agui_container.agents.gate.call_tool import AgentWithTools
from agui_container.agents.gate.journal import LIFETIME, Journal
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.ports import Item, RunInterrupted
from agui_container.tools.policy import ToolPolicy
from tests.agents.turns import (
    EFFECTS,
    POLICY,
    Client,
    answer_all,
    asks,
    entry,
    expected_effects,
    expected_questions,
    gathered,
    in_order,
    tools,
)
from tests.contexts import of_type
from tests.engine.doubles import FakeClock, eventually, make_service

CONSENTS: list[str] = []
"""Consents that a person has given. Tests clear it."""

TEST_ENDED = threading.Event()


@tool
def hang_in_thread() -> str:
    """Start, and come back once the test has ended."""
    EFFECTS.append("hang_in_thread")
    TEST_ENDED.wait()
    return ""


@tool
def send(amount: int) -> str:
    """Send an amount, once a person has signed in."""
    if not CONSENTS:
        raise RunInterrupted([Interrupt(id="consent", reason="consent", message="Sign in.")])
    EFFECTS.append(f"send {amount}")
    return f"sent {amount}"


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    EFFECTS.clear()
    CONSENTS.clear()
    TEST_ENDED.clear()
    yield FakeClock()
    TEST_ENDED.set()


def served(agent: object, clock: FakeClock, policy: str = POLICY) -> Client:
    named = {each.spec.name: each for each in (*tools, hang_in_thread, send)}
    journal = Journal(clock.time)
    gate = AgentWithTools(
        as_agent(agent, "agent"), (), ToolPolicy.parse(policy), journal, is_configured=True, monotonic=monotonic
    )
    return Client(asks(make_service(gate, clock=clock, tools=named)))


async def answer_calls_first(client: Client, answer_late: Callable[[], Awaitable[None]]) -> None:
    """Answer approvals at once, and one question of the agent's own after ``answer_late``, until nothing waits."""
    for _ in range(10):
        calls = [interrupt for interrupt in client.waiting if interrupt.tool_call_id]
        if not client.waiting:
            break
        if not calls:
            await answer_late()
        await client.resume([entry(interrupt, "together") for interrupt in calls or client.waiting[:1]])


@pytest.mark.parametrize("lifetimes", [0.9, 1.1, 30])
@pytest.mark.parametrize("make", [in_order, gathered])
@pytest.mark.parametrize(
    "steps",
    [
        ("pay 1", "ask"),
        ("ask", "pay 1", "ask"),
        ("look 1", "ask", "pay 2", "ask"),
        ("pay 1", "ask", "refund 2"),
    ],
    ids=", ".join,
)
async def test_calls_are_known_for_as_long_as_a_question_waits(
    clock: FakeClock, steps: tuple[str, ...], make: Callable[[tuple[str, ...]], object], lifetimes: float
) -> None:
    async def wait() -> None:
        clock.advance(lifetimes * LIFETIME)

    client = served(make(steps), clock)
    await client.send("go")
    await answer_calls_first(client, wait)
    assert (client.outcome, sorted(EFFECTS)) == ("success", expected_effects(steps, "together"))
    assert len(client.questions) == expected_questions(steps)


async def test_an_approved_call_is_known_when_another_one_is_cancelled_late(clock: FakeClock) -> None:
    client = served(gathered(["pay 1", "refund 2"]), clock)
    await client.send("go")
    await client.resume([entry(client.waiting[0], "together")])
    clock.advance(1.9 * LIFETIME)
    await client.resume([entry(client.waiting[0], "cancelled")])
    assert (client.outcome, EFFECTS) == ("success", ["pay 1"])


async def test_a_call_whose_arguments_were_edited_is_known_after_it_asked_something_itself(clock: FakeClock) -> None:
    client = served(in_order(["send 1"]), clock, '[{"tool_pattern": "send", "policy": "ask"}]')
    await client.send("go")
    await client.resume([entry(interrupt, "edited") for interrupt in client.waiting])
    CONSENTS.append("signed in")
    await client.resume([entry(interrupt, "together") for interrupt in client.waiting])
    assert (client.outcome, client.text, EFFECTS) == ("success", "sent 9", ["send 9"])


async def test_a_call_that_the_agent_cancels_leaves_nothing_open_for_the_client(clock: FakeClock) -> None:
    async def impatient(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        call = asyncio.create_task(ctx.call_tool("hang"))
        await eventually(lambda: "hang" in EFFECTS)
        call.cancel()
        await asyncio.wait([call])
        yield "cancelled"

    client = served(impatient, clock)
    await client.send("go")
    assert (client.outcome, client.text) == ("success", "cancelled")
    assert [event.content for event in of_type(client.events, ToolCallResultEvent)] == [CUT_OFF]


@pytest.mark.parametrize("at_once", [False, True])
async def test_calls_that_an_agent_names_itself_are_run_once(clock: FakeClock, *, at_once: bool) -> None:
    async def naming(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        calls = [partial(ctx.call_tool, "pay", {"amount": amount}, call_id=f"call-{amount}") for amount in (1, 2)]
        said = await asyncio.gather(*(call() for call in calls)) if at_once else [await call() for call in calls]
        yield ", ".join(map(str, said))

    client = served(naming, clock)
    await client.send("go")
    for _ in range(4):
        if client.waiting:
            await client.resume([entry(client.waiting[0], "one by one")])
    assert (client.outcome, client.text, EFFECTS) == ("success", "paid 1, paid 2", ["pay 1", "pay 2"])


@pytest.mark.parametrize("tool", ["hang", "hang_in_thread"])
async def test_a_call_that_the_agent_gives_up_is_not_run_again_by_a_replay(clock: FakeClock, tool: str) -> None:
    async def impatient(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        try:
            known = len(EFFECTS)
            call = asyncio.create_task(ctx.call_tool(tool))
            await eventually(lambda: call.done() or len(EFFECTS) > known)
            call.cancel()
            await call
        except asyncio.CancelledError:
            yield "gave up, "
        except ToolError as error:
            yield f"{error} "
        yield str(await ctx.call_tool("pay", {"amount": 1}))

    client = served(impatient, clock)
    await client.send("go")
    await client.resume([entry(interrupt, "together") for interrupt in client.waiting])
    assert client.outcome == "success"
    assert [tool, "pay 1"] == EFFECTS
    assert "whether it took effect is not known" in client.text


async def test_a_call_whose_arguments_have_changed_is_a_new_call(clock: FakeClock) -> None:
    amounts = iter([1, 2, 2])

    async def changing(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield str(await ctx.call_tool("pay", {"amount": next(amounts)}))

    client = served(changing, clock)
    await client.send("go")
    await answer_all(client, "together")
    assert (client.outcome, client.text, EFFECTS) == ("success", "paid 2", ["pay 1", "pay 2"])
