"""A second caller is served while the first one does its worst. Callers are sessions here, which a gateway names."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, TokenUsage, UserMessage

from agui_container.engine.limits import CapacityLimits, IdentityLimits
from agui_container.ports import Item, RunContext
from tests.behaviour.client import Client, Refused, begin_run, outcome, text
from tests.conftest import Connect
from tests.engine.doubles import ask, eventually


class Worker:
    """An agent with commands: ``wait`` until it may end, ``flood`` with text, or a short answer."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def run(self, asked: RunAgentInput) -> AsyncIterator[Item]:
        said = asked.messages[-1].content if isinstance(asked.messages[-1], UserMessage) else ""
        yield "hi"
        if said == "wait":
            await self.may_end.wait()
        while said == "flood":
            yield "x" * 100


async def refusal(client: Client, thread: str) -> Refused:
    with pytest.raises(Refused) as refused:
        await client.start(ask(thread, text="wait"))
    assert refused.value.code == "RATE_LIMIT_EXCEEDED"
    return refused.value


async def is_served(client: Client) -> bool:
    events = await client.run(ask("small", text="hello"))
    return (text(events), outcome(events)) == ("hi", "success")


async def test_a_caller_with_all_its_runs_open_leaves_the_others_theirs(connect: Connect) -> None:
    client = await connect(Worker(), CapacityLimits(open_runs=4), IdentityLimits(runs=2), limit_by="session")
    first, second = client.session("first"), client.session("second")
    for thread in ("t1", "t2"):
        await begin_run(first, thread=thread, text="wait")
    refused = await refusal(first, "t3")
    assert refused.message == "You have reached the limit of 2 open runs for one identity (AGUI_CALLER_LIMITS)."
    assert await is_served(second)


async def test_events_of_one_caller_do_not_end_the_runs_of_another(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker()
    client = await connect(worker, CapacityLimits(all_bytes=40_000), limit_by="session")
    first, second = client.session("first"), client.session("second")
    waiting = await begin_run(second, thread="t1", text="wait")
    floods = [await first.start(ask(f"t{number}", text="flood")) for number in range(5)]
    ends = [(await flood.rest())[-1] for flood in floods]
    assert {(end["code"], end["metadata"]["retryable"]) for end in ends} == {("RATE_LIMIT_EXCEEDED", True)}
    assert caplog.text.count("limit reached limit=logBytes") == 1
    worker.may_end.set()
    assert outcome(await waiting.rest()) == "success"
    assert await is_served(second)


@pytest.mark.wire
async def test_a_caller_that_begins_too_many_runs_is_told_when_to_come_back(connect: Connect) -> None:
    client = await connect(Worker(), caller_limits=IdentityLimits(runs_per_minute=3), limit_by="session")
    first, second = client.session("first"), client.session("second")
    for number in range(3):
        await first.run(ask(f"t{number}"))
    refused = await refusal(first, "t3")
    assert "3 runs in a minute" in refused.message
    assert refused.retry_after == 60
    assert await is_served(second)
    client.clock.advance(60)
    assert outcome(await first.run(ask("t3"))) == "success"


@pytest.mark.durable
async def test_a_caller_without_tokens_can_go_on_the_next_day(connect: Connect) -> None:
    async def agent(asked: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield "hi"
        ctx.usage.append(TokenUsage(provider="own", model="own", input_tokens=60))

    client = await connect(agent, principal_tokens=100)
    first, second = client.session("first"), client.session("second")
    client.clock.now = 86_400.0 * 3 - 600
    assert [outcome(await first.run(ask(f"t{number}"))) for number in range(2)] == ["success"] * 2
    refused = await refusal(first, "t2")
    assert refused.message == (
        "You have used your 100 tokens of this day (AGUI_PRINCIPAL_TOKENS). You can go on at 1970-01-04 00:00 UTC."
    )
    assert refused.retry_after == 600
    assert outcome(await first.run(ask("t0"))) == "success"  # a retry of the first run
    assert await is_served(second)
    client.clock.advance(600)
    assert outcome(await first.run(ask("t2"))) == "success"


async def test_nothing_is_counted_once_all_is_over(connect: Connect) -> None:
    worker = Worker()
    client = await connect(worker, limit_by="session")
    first = client.session("first")
    streams = [await begin_run(first, thread=f"t{number}", text="wait") for number in range(3)]
    await streams[0].leave()
    worker.may_end.set()
    assert [outcome(await stream.rest()) for stream in streams[1:]] == ["success", "success"]
    await eventually(lambda: (client.service.quota.open_runs, client.service.readers.open_count) == (0, 0))
