"""A second caller's session is served while the first caller does its worst over gRPC."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from agui_container.engine.admission.quota import Limit
from agui_container.engine.policy import IdentityLimits
from agui_container.ports import Item, RunContext
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from agui_container.transports.grpc.connection import MAX_STREAMS
from tests.engine.doubles import eventually
from tests.grpc.callers import (
    UNREAD_WINDOW,
    GrpcCaller,
    RozSession,
    is_served,
    serving_callers,
)
from tests.grpc.two_clients import RozTurn, two_clients
from tests.requirements import requirement

BUDGET = 40_000_000
MEGABYTES = 4_500_000
"""Bytes of which four fit into half of the budget, and five do not."""

FITTING = 4
FULL = (Status.RESOURCE_EXHAUSTED, "RATE_LIMIT_EXCEEDED")


class ObedientAgent:
    """An agent that answers briefly, or does what its user says.

    It can ``wait`` until it may end, do so in the ``background``, or ``flood`` its reader with text.
    """

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.flooded = 0

    async def run(self, asked: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        said = asked.messages[-1].content if isinstance(asked.messages[-1], UserMessage) else ""
        yield "hi"
        if isinstance(said, str) and said.startswith("wait"):
            await self.may_end.wait()
        if said == "flood":
            for _ in range(1_000):
                yield "x" * 1_000
            self.flooded += 1
        if said == "background":
            ctx.background(self.may_end.wait())


# --- bytes that a session keeps ---------------------------------------------------------------------------------------


async def with_history(caller: GrpcCaller) -> RozSession:
    text = roz.ContentPart(text=roz.TextContent(text="x" * MEGABYTES))
    return await caller.begin_session(history=[roz.ConversationMessage(role="user", parts=[text])])


async def with_context(caller: GrpcCaller) -> RozSession:
    return await caller.begin_session(project_context=["x" * MEGABYTES])


async def with_tools(caller: GrpcCaller) -> RozSession:
    return await caller.begin_session(tools=[roz.ToolSchema(name="f", description="x" * MEGABYTES)])


async def with_system_context(caller: GrpcCaller) -> RozSession:
    session = await caller.begin_session()
    tools = [roz.ToolSchema(name="f")]
    await session.send(register_tools=roz.RegisterTools(source="s", tools=tools, system_context="x" * MEGABYTES))
    await session.send(ping=roz.Ping())
    await session.until("pong")
    return session


async def with_waiting_message(caller: GrpcCaller) -> RozSession:
    session = await caller.begin_session()
    await session.say("wait")
    await session.until("text_delta")
    await session.say("x" * MEGABYTES)
    await session.send(ping=roz.Ping())
    await session.until("pong")
    return session


KEPT = [with_history, with_context, with_tools, with_system_context, with_waiting_message]


@requirement("grpc.memory")
@pytest.mark.parametrize("begin", KEPT)
async def test_sessions_of_one_caller_keep_no_more_than_half_of_the_budget_and_another_ones_run(
    begin: Callable[[GrpcCaller], Awaitable[RozSession]],
) -> None:
    async with serving_callers(ObedientAgent(), max_bytes_in_flight=BUDGET, on_busy="enqueue") as callers:
        first, second = callers.connect("first"), callers.connect("second")
        sessions = [await begin(first) for _ in range(FITTING)]
        with pytest.raises(GRPCError) as refused:
            await begin(first)
        assert refused.value.status is Status.RESOURCE_EXHAUSTED
        assert "AGUI_MAX_BYTES_IN_FLIGHT" in (refused.value.message or "")
        assert await is_served(second)
        await begin(second)
        await sessions[0].end()
        await begin(first)


@requirement("grpc.memory")
async def test_a_history_is_released_once_it_is_stored() -> None:
    async with serving_callers(ObedientAgent(), max_bytes_in_flight=BUDGET) as callers:
        first = callers.connect("first")
        for _ in range(FITTING + 1):
            session = await with_history(first)
            await session.say("hello")
            await session.until("turn_complete")


@requirement("grpc.memory")
@pytest.mark.parametrize("source", ["", "s"])
async def test_tools_that_are_registered_again_count_once(source: str) -> None:
    async with serving_callers(ObedientAgent(), max_bytes_in_flight=BUDGET) as callers:
        session = await callers.connect("first").begin_session()
        tools = [roz.ToolSchema(name="f", description="x" * MEGABYTES)]
        for _ in range(FITTING + 1):
            await session.send(register_tools=roz.RegisterTools(source=source, tools=tools))
            await session.send(ping=roz.Ping())
            await session.until("pong")


@requirement("grpc.memory")
async def test_results_of_the_client_count_until_their_turn_ends_and_refused_ones_do_not() -> None:
    async with two_clients() as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say("call look\ncall look", tools=[roz.ToolSchema(name="look", description="Look.")])
        first, second = [(await turn.until("tool_call_requested")).call_id for _ in range(2)]
        used = clients.service.quota.amounts[Limit.BYTES_IN_FLIGHT]
        for call_id in ("unknown", first, first):
            await turn.send(tool_result=roz.ToolResult(tool_call_id=call_id, success=True, result="x" * MEGABYTES))
        for _ in range(2):
            await turn.until("session_rejected")
        await eventually(lambda: MEGABYTES < used.used < 2 * MEGABYTES)
        await turn.send(tool_result=roz.ToolResult(tool_call_id=second, success=True))
        await turn.until("turn_finished")
        await eventually(lambda: used.used == 0)


@requirement("grpc.memory")
async def test_runs_of_kontekst_count_their_commands_until_they_end() -> None:
    worker, prompt = ObedientAgent(), "wait".ljust(MEGABYTES)
    async with serving_callers(worker, max_bytes_in_flight=BUDGET) as callers:
        first, second = callers.connect("first"), callers.connect("second")
        runs = [await first.run(prompt) for _ in range(FITTING)]
        with pytest.raises(GRPCError) as refused:
            await first.run(prompt)
        assert refused.value.status is Status.RESOURCE_EXHAUSTED
        assert await is_served(second)
        worker.may_end.set()
        await runs[0].end()
        while await runs[0].receive() is not None:
            pass
        await first.run(prompt)


@requirement("caller.requests")
async def test_the_whole_input_of_a_session_counts_as_its_request() -> None:
    async with serving_callers(ObedientAgent()) as callers:
        session = await with_history(callers.connect("first"))
        quota = callers.service.quota
        assert quota.amounts[Limit.REQUEST_BYTES].used == 0
        await session.say("wait")
        await session.until("text_delta")
        assert quota.amounts[Limit.REQUEST_BYTES].used > MEGABYTES


# --- numbers ----------------------------------------------------------------------------------------------------------


@requirement("caller.streams")
async def test_sessions_of_one_caller_leave_room_for_those_of_another() -> None:
    async with serving_callers(ObedientAgent(), IdentityLimits(sockets=3)) as callers:
        first, second = callers.connect("first"), callers.connect("second")
        for _ in range(3):
            await first.begin_session()
        refused = first.new_session()
        await refused.send(start=roz.StartSession())
        assert await refused.refusal() == FULL
        assert await is_served(second)


@requirement("caller.streams")
async def test_a_connection_with_all_its_calls_open_does_not_delay_another_caller() -> None:
    async with serving_callers(ObedientAgent()) as callers:
        first, second = callers.connect("first"), callers.connect("second")
        for _ in range(MAX_STREAMS):
            await first.begin_session()
        assert await is_served(second)


@requirement("caller.messages")
async def test_messages_of_one_caller_above_its_rate_end_its_calls_and_another_one_is_served() -> None:
    async with serving_callers(ObedientAgent(), IdentityLimits(messages_per_second=5)) as callers:
        first, second = callers.connect("first"), callers.connect("second")
        session, again = await first.begin_session(), await first.begin_session()
        for _ in range(4):
            await session.send(ping=roz.Ping())
        assert await session.refusal() == FULL
        await again.send(ping=roz.Ping())
        with pytest.raises(GRPCError, match="AGUI_CALLER_LIMITS, messagesPerSecond"):
            await again.until("pong")
        assert await is_served(second)


@requirement("caller.streams")
async def test_unread_replies_of_one_caller_do_not_delay_another_one() -> None:
    worker = ObedientAgent()
    async with serving_callers(worker) as callers:
        first, second = callers.connect("first", window=UNREAD_WINDOW), callers.connect("second")
        for number in range(20):
            await first.run("flood", thread=f"{number}")
        assert await is_served(second)
        await eventually(lambda: worker.flooded == 20)
        assert await is_served(second)


@requirement("roz.tools")
async def test_sessions_with_all_their_tools_do_not_delay_another_caller() -> None:
    tools = [roz.ToolSchema(name=f"t{number}", description="x" * 1_000) for number in range(1_000)]
    async with serving_callers(ObedientAgent(), max_bytes_in_flight=BUDGET) as callers:
        first, second = callers.connect("first"), callers.connect("second")
        for _ in range(5):
            await first.begin_session(tools=tools)
        many = await first.begin_session()
        await many.send(register_tools=roz.RegisterTools(source="s", tools=[*tools, *tools]))
        await many.until("error")
        assert await is_served(second)
