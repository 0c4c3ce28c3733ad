"""Tool calls at work in one run: bounded at any depth, in order, without deadlock, and ended with the run."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import pytest
from ag_ui.core import RunAgentInput, ToolCallResultEvent
from ag_ui.core import Tool as ToolSpec
from msgspec.structs import replace

from agui_container.agents.as_agent import as_agent
from agui_container.agents.gate.call_tool import AgentWithTools
from agui_container.agents.gate.gate import run_side_by_side
from agui_container.agents.gate.journal import Journal
from agui_container.assistant.assistant import Assistant
from agui_container.assistant.subagents import Subagent
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext, Tool, allow_all
from agui_container.ports.tool_calls import MAX_CALLS_AT_WORK, CallSlots
from agui_container.tools.function_tool import FunctionTool
from tests.contexts import collect_items, expanded, of_type, run_context, run_input
from tests.engine.doubles import WAIT, asking, caller, cancel_run, eventually, make_service

TURNS = 5
"""Turns of the loop that a call takes here."""


@dataclass
class Probe:
    """A tool that counts its calls: those at work, the most at once, and the numbers in the order of their starts."""

    at_work: int = 0
    most: int = 0
    started: list[int] = field(default_factory=list)
    ends: asyncio.Event | None = None

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name="probe", description="Counts.", parameters={"type": "object"})

    async def call(self, arguments: Mapping[str, object], _: RunContext) -> str:
        number = arguments.get("number", 0)
        assert isinstance(number, int)
        self.started.append(number)
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            if self.ends is not None:
                await self.ends.wait()
            for _turn in range(TURNS if number % 2 else 2 * TURNS):  # every other one overtakes the one before
                await asyncio.sleep(0)
        finally:
            self.at_work -= 1
        return f"number {number}"


def probes(count: int) -> str:
    return "\n".join(f'call probe {{"number": {number}}}' for number in range(count))


def delegation(task: str) -> str:
    return f"call delegate {json.dumps({'task': task})}"


def delegations(count: int, task: str) -> str:
    return "\n".join([delegation(task)] * count)


def make_delegating_assistant(*tools: Tool, depth: int) -> Assistant:
    agent = Assistant(OfflineModel(), tools)
    for _ in range(depth):
        agent = Assistant(OfflineModel(), (*tools, Subagent("delegate", "Helps.", agent)))
    return agent


async def answers(agent: Assistant, said: str, limit: int) -> list[str]:
    ctx = replace(run_context(), call_slots=CallSlots(limit))
    async with asyncio.timeout(WAIT):
        events = expanded(await collect_items(agent.run(run_input(said), ctx)))
    return [str(event.content) for event in of_type(events, ToolCallResultEvent)]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_no_more_calls_are_at_work_than_a_run_may_have_nested_ones_included(limit: int) -> None:
    probe = Probe()
    results = await answers(make_delegating_assistant(probe, depth=2), delegations(6, delegations(6, probes(6))), limit)
    assert len(results) == 6
    assert len(probe.started) == 6**3
    assert probe.most == limit


async def test_no_more_calls_of_a_function_are_at_work_than_a_run_may_have() -> None:
    probe = Probe()

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        said = await asyncio.gather(*[ctx.call_tool("probe", {"number": number}) for number in range(40)])
        yield str(said[-1])

    gate = AgentWithTools(
        as_agent(agent, "agent"), (), allow_all, Journal(), is_configured=True, monotonic=time.monotonic
    )
    reader = await make_service(gate, tools={"probe": probe}).admit(asking(text="go"), caller())
    await eventually(lambda: reader.run.log.has_ended)
    assert (len(probe.started), probe.most) == (40, MAX_CALLS_AT_WORK)


async def test_a_cancelled_run_ends_its_calls_at_work_and_starts_no_waiting_one() -> None:
    probe, before = Probe(ends=asyncio.Event()), asyncio.all_tasks()
    service = make_service(make_delegating_assistant(probe, depth=1))
    reader = await service.admit(asking(text=delegations(9, probes(9))), caller())
    await eventually(lambda: probe.at_work == MAX_CALLS_AT_WORK)
    cancel_run(service, reader)
    assert reader.run.log.has_ended
    await eventually(lambda: asyncio.all_tasks() == before)
    assert probe.at_work == 0
    assert len(probe.started) == MAX_CALLS_AT_WORK


async def test_a_subagent_that_is_cut_off_gives_its_slots_back() -> None:
    probe, slots = Probe(ends=asyncio.Event()), CallSlots(3)
    ctx = replace(run_context(), call_slots=slots)

    async def cut_off() -> None:
        group = run_side_by_side([partial(probe.call, {}, ctx)] * 9, ctx)
        task = asyncio.ensure_future(group)
        await eventually(lambda: probe.at_work >= 2)
        task.cancel()
        await asyncio.wait([task])

    async with asyncio.timeout(WAIT):
        await slots.run([cut_off, cut_off])
        assert probe.at_work == 0
        later = Probe()
        await slots.run([partial(later.call, {}, ctx)] * 9)
    assert later.most == 3


async def test_a_run_of_nested_calls_takes_turns_with_others() -> None:
    """However many subagents it has at work, each turn of the loop sees a few of its events, and others go on."""
    fast = FunctionTool("fast", "Answers.", {"type": "object"}, _answer)
    service, before = make_service(make_delegating_assistant(fast, depth=2)), asyncio.all_tasks()
    nested = await service.admit(
        asking("nested", text=delegations(20, delegations(20, "call fast\ncall fast"))), caller()
    )
    other = await service.admit(asking("other", text="stream 100000"), caller())
    lengths: list[tuple[int, int]] = []
    async with asyncio.timeout(WAIT):
        while not other.run.log.has_ended:
            await asyncio.sleep(0)
            lengths.append((len(nested.run.log), len(other.run.log)))
        grown = [(there - here, beyond - before) for (here, before), (there, beyond) in pairwise(lengths)]
        assert not nested.run.log.has_ended
        assert max(nested_events for nested_events, _ in grown) <= 100
        gaps = [at for at, (_, events) in enumerate(grown) if events]
        assert max(later - earlier for earlier, later in pairwise(gaps)) <= 4
    cancel_run(service, nested)
    await eventually(lambda: asyncio.all_tasks() == before)


async def _answer() -> str:
    return "done"
