"""A second caller is served while the first one does its worst. Callers are sessions here, which a gateway names."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, UserMessage

from agui_container.engine.admission.quota import Limit
from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.ports import Item, RunContext
from agui_container.transports.caller_middleware import SESSION_HEADER
from tests.behaviour.client import Client, Refused, RunStream, outcome, text
from tests.behaviour.over_platform import sessions_are_apart
from tests.conftest import Connect
from tests.engine.doubles import Json, ask, eventually
from tests.requirements import requirement

pytestmark = sessions_are_apart


class Worker:
    """An agent with commands: ``wait`` until it may end, ``flood`` with text, or a short answer."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def run(self, asked: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        said = asked.messages[-1].content if isinstance(asked.messages[-1], UserMessage) else ""
        yield "hi"
        if said == "wait":
            await self.may_end.wait()
        while said == "flood":
            yield "x" * 100
        if said == "background":
            ctx.background(self.may_end.wait())


def session(client: Client, name: str) -> Client:
    """Return the client of one caller."""
    return client.with_headers(**{SESSION_HEADER.replace("-", "_"): name})


async def begin_run(client: Client, thread: str, said: str = "wait") -> RunStream:
    stream = await client.start(ask(thread, text=said))
    await stream.until("TEXT_MESSAGE_CONTENT")
    return stream


async def refusal(client: Client, thread: str, said: str = "wait") -> Refused:
    with pytest.raises(Refused) as refused:
        await client.start(ask(thread, text=said))
    assert refused.value.code == "RATE_LIMIT_EXCEEDED"
    return refused.value


async def is_served(client: Client) -> bool:
    """Return True if a small run of this caller succeeds."""
    events = await client.run(ask("small", text="hello"))
    return (text(events), outcome(events)) == ("hi", "success")


@requirement("caller.runs")
async def test_a_caller_with_all_its_runs_open_leaves_the_others_theirs(connect: Connect) -> None:
    client = await connect(Worker(), CapacityLimits(open_runs=4), IdentityLimits(runs=2), limit_by="session")
    first, second = session(client, "first"), session(client, "second")
    for thread in ("t1", "t2"):
        await begin_run(first, thread)
    refused = await refusal(first, "t3")
    assert refused.message == "You have reached the limit of 2 open runs for one identity (AGUI_CALLER_LIMITS, runs)."
    assert await is_served(second)


@requirement("caller.abandoned")
async def test_runs_that_nobody_reads_take_no_room_from_their_caller_or_others(connect: Connect) -> None:
    client = await connect(Worker(), CapacityLimits(open_runs=6), IdentityLimits(runs=4), limit_by="session")
    first, second = session(client, "first"), session(client, "second")
    for number in range(20):
        await (await begin_run(first, f"t{number}")).leave()
        assert client.service.quota.amounts[Limit.RUNS].used <= 4
    statuses = [(await first.attach(f"t{number}", None)) for number in (0, 15)]
    assert [outcome(await stream.rest()) for stream in statuses] == ["cancelled", "cancelled"]
    assert await is_served(second)


@requirement("caller.abandoned")
async def test_when_the_process_is_full_the_run_that_was_left_first_gives_way(connect: Connect) -> None:
    client = await connect(Worker(), CapacityLimits(open_runs=4), IdentityLimits(runs=2), limit_by="session")
    first, other = session(client, "first"), session(client, "other")
    for caller, thread in ((first, "t1"), (other, "t2"), (other, "t3"), (first, "t4")):
        await (await begin_run(caller, thread)).leave()
    assert await is_served(session(client, "second"))
    assert outcome(await (await first.attach("t1", None)).rest()) == "cancelled"
    assert [len(client.service.registry.queue(f"session:{name}", thread)) for name, thread in WAITING] == [1, 1, 1]


WAITING = [("other", "t2"), ("other", "t3"), ("first", "t4")]


@requirement("caller.abandoned")
async def test_a_run_that_is_read_never_gives_way(connect: Connect) -> None:
    worker = Worker()
    client = await connect(worker, CapacityLimits(open_runs=2), IdentityLimits(runs=2), limit_by="session")
    first, second = session(client, "first"), session(client, "second")
    read, left = await begin_run(first, "t1"), await begin_run(first, "t2")
    await left.leave()
    again = await first.attach("t2", None)
    await again.until("TEXT_MESSAGE_CONTENT")
    refused = await refusal(second, "t3")
    assert refused.message == "This server has reached its limit of 2 open runs."
    worker.may_end.set()
    assert [outcome(await stream.rest()) for stream in (read, again)] == ["success", "success"]


@requirement("caller.requests")
@pytest.mark.parametrize("large", [{"state": "x" * 15_000}, {"state": [[]] * 250}], ids=["in bytes", "in memory"])
async def test_large_requests_of_one_caller_leave_room_for_those_of_others(connect: Connect, large: Json) -> None:
    limits = CapacityLimits(open_bytes=40_000), IdentityLimits(request_bytes=20_000)
    client = await connect(Worker(), *limits, limit_by="session")
    first, second = session(client, "first"), session(client, "second")
    await first.start(ask("t1", text="wait", **large))
    with pytest.raises(Refused, match="bytes of requests of open runs") as refused:
        await first.start(ask("t2", text="wait", **large))
    assert refused.value.code == "RATE_LIMIT_EXCEEDED"
    assert await is_served(second)


@requirement("caller.logs")
async def test_events_of_one_caller_do_not_end_the_runs_of_another(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker()
    client = await connect(
        worker, CapacityLimits(all_bytes=40_000), IdentityLimits(log_bytes=20_000), limit_by="session"
    )
    first, second = session(client, "first"), session(client, "second")
    waiting = await begin_run(second, "t1")
    floods = [await first.start(ask(f"t{number}", text="flood")) for number in range(5)]
    ends = [(await flood.rest())[-1] for flood in floods]
    assert {(end["code"], end["metadata"]["retryable"]) for end in ends} == {("RATE_LIMIT_EXCEEDED", True)}
    assert "AGUI_CALLER_LIMITS, logBytes" in ends[0]["message"]
    assert caplog.text.count("limit reached limit=logBytes identity=") == 1
    worker.may_end.set()
    assert outcome(await waiting.rest()) == "success"
    assert await is_served(second)


@requirement("caller.logs")
async def test_ended_runs_of_a_caller_leave_room_for_its_next_ones(connect: Connect) -> None:
    client = await connect(Worker(), caller_limits=IdentityLimits(log_bytes=5_000), limit_by="session")
    first = session(client, "first")
    for number in range(20):
        assert outcome(await first.run(ask(f"t{number}", text="hello"))) == "success"
        await eventually(lambda: client.service.quota.amounts[Limit.STREAMS].used == 0)


@requirement("caller.rate")
async def test_a_caller_that_begins_too_many_runs_is_told_when_to_come_back(connect: Connect) -> None:
    client = await connect(Worker(), caller_limits=IdentityLimits(runs_per_minute=3), limit_by="session")
    first, second = session(client, "first"), session(client, "second")
    for number in range(3):
        await first.run(ask(f"t{number}"))
    refused = await refusal(first, "t3")
    assert "3 runs in a minute" in refused.message
    assert refused.retry_after == 20
    assert await is_served(second)
    client.clock.advance(20)
    assert outcome(await first.run(ask("t3"))) == "success"


@requirement("caller.rate")
async def test_retries_and_readers_are_no_new_runs(connect: Connect) -> None:
    client = await connect(Worker(), caller_limits=IdentityLimits(runs_per_minute=1), limit_by="session")
    first = session(client, "first")
    for _ in range(3):
        assert outcome(await first.run(ask())) == "success"
        assert outcome(await (await first.attach("t1", None)).rest()) == "success"


@requirement("caller.streams")
async def test_readers_of_one_caller_leave_room_for_those_of_others(connect: Connect) -> None:
    client = await connect(Worker(), CapacityLimits(open_streams=4), IdentityLimits(streams=2), limit_by="session")
    first, second = session(client, "first"), session(client, "second")
    await begin_run(first, "t1")
    reader = await first.attach("t1", None)
    with pytest.raises(Refused, match="AGUI_CALLER_LIMITS, streams"):
        await first.attach("t1", None)
    await refusal(first, "t2")
    assert not client.service.registry.queue("session:first", "t2")
    assert await is_served(second)
    await reader.leave()
    await begin_run(first, "t2")


@requirement("caller.background")
async def test_background_work_of_one_caller_keeps_only_its_own_runs_waiting(connect: Connect) -> None:
    worker = Worker()
    client = await connect(
        worker, CapacityLimits(background_tasks=4), IdentityLimits(background_tasks=2), limit_by="session"
    )
    first, second = session(client, "first"), session(client, "second")
    for thread in ("t1", "t2"):
        assert outcome(await first.run(ask(thread, text="background"))) == "success"
    refused = await refusal(first, "t3")
    assert "2 background tasks for one identity" in refused.message
    assert await is_served(second)
    worker.may_end.set()
    await eventually(lambda: client.service.quota.amounts[Limit.BACKGROUND_TASKS].used == 0)
    assert outcome(await first.run(ask("t3"))) == "success"


@requirement("caller.runs", "caller.streams")
async def test_nothing_is_counted_once_all_is_over(connect: Connect) -> None:
    worker = Worker()
    client = await connect(worker, limit_by="session")
    first = session(client, "first")
    streams = [await begin_run(first, f"t{number}") for number in range(3)]
    await streams[0].leave()
    worker.may_end.set()
    assert [outcome(await stream.rest()) for stream in streams[1:]] == ["success", "success"]
    counted = (Limit.RUNS, Limit.REQUEST_BYTES, Limit.STREAMS)
    await eventually(lambda: [client.service.quota.amounts[resource].used for resource in counted] == [0, 0, 0])
