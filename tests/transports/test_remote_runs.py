"""Readers of other replicas' runs: a store that does not come back, runs that are evicted, and runs that have ended."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from types import AsyncGeneratorType

import pytest

from agui_container.engine.persistence import remote_run
from agui_container.main import build_app
from agui_container.ports.store import StoreUnavailable
from agui_container.settings import Settings
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.engine.doubles import WAIT, ask, asking, caller, envelopes, eventually, status
from tests.engine.replicas import Replicas
from tests.engine.test_recorder import RUN, wait_until_stored
from tests.requirements import requirement
from tests.sse import http_client
from tests.transports.sockets import brief, frame_names, whole
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.websocket import receive, send

ATTACH = {"type": "attach", "threadId": "t1", "runId": "r1"}


async def raise_unavailable(*_: object) -> None:
    """Raise the error of a store that is unavailable."""
    raise StoreUnavailable("gone")


@requirement("durable.gone")
async def test_a_socket_is_told_that_a_run_cannot_be_read_on_and_stays_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "GIVE_UP_SECONDS", 0.05)
    replicas, agent = Replicas(), WaitingAgent(run_id_event)
    here, there = await replicas.start(agent), await replicas.start(brief)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 2)
    async with serving(build_app(Settings(), there)) as url:
        client = OverWs(there, replicas.clock, url)
        socket = await client.connect()
        await send(socket, {"command": ATTACH})
        assert sorted(frame_names(await receive(socket, 3))) == ["CUSTOM r1", "RUN_STARTED r1", "result r1"]
        with monkeypatch.context() as broken:
            broken.setattr(replicas.store.runs, "get", raise_unavailable)
            [told] = await receive(socket, 1)
        assert (told["control"], told["code"], told["retryable"]) == ("error", "STORE_UNAVAILABLE", True)
        assert (told["threadId"], told["runId"]) == ("t1", "r1")
        await send(socket, ask("t2", "r2"))
        assert frame_names(await receive(socket, 3)) == whole("r2")
        agent.may_end.set()
        await send(socket, {"command": {**ATTACH, "after": 2}})
        assert sorted(frame_names(await receive(socket, 2))) == ["RUN_FINISHED r1", "result r1"]
        await client.close()
    await wait_until_stored(here)


@requirement("http.ended")
async def test_a_reader_with_all_events_of_a_run_that_ended_elsewhere_gets_204() -> None:
    replicas = Replicas()
    here, there = await replicas.start(brief), await replicas.start(brief)
    await envelopes(await here.admit(asking(), caller()))
    await wait_until_stored(here)
    async with serving(build_app(Settings(), there)) as url, http_client(url) as http:
        rest = await http.get("/runs/r1/events?after=2")
        response = await http.get("/runs/r1/events?after=3")
    assert (rest.status_code, rest.content.count(b"data: ")) == (200, 1)
    assert (response.status_code, response.content) == (204, b"")
    await asyncio.wait_for(there.readers.wait_all_closed(WAIT), WAIT)


@contextmanager
def record_readings() -> Iterator[list[AsyncGeneratorType[object, object]]]:
    """Record the async generators of the module that reads runs of other replicas, from their first step."""
    noted, hooks = list[AsyncGeneratorType[object, object]](), sys.get_asyncgen_hooks()

    def note(generator: AsyncGenerator[object, object]) -> None:
        if isinstance(generator, AsyncGeneratorType) and generator.ag_code.co_filename == remote_run.__file__:
            noted.append(generator)
        if hooks.firstiter is not None:
            hooks.firstiter(generator)

    sys.set_asyncgen_hooks(firstiter=note)
    try:
        yield noted
    finally:
        sys.set_asyncgen_hooks(*hooks)


@requirement("http.ended")
async def test_a_stream_of_a_run_elsewhere_leaves_nothing_of_its_reading_open() -> None:
    replicas, agent = Replicas(), WaitingAgent(run_id_event)
    here, there = await replicas.start(agent), await replicas.start(brief)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 2)
    async with serving(build_app(Settings(), there)) as url, http_client(url) as http:
        with record_readings() as readings:
            async with http.stream("GET", "/runs/r1/events") as response:
                live, pieces = b"", response.aiter_bytes()
                while live.count(b"data: ") < 2:
                    live += await anext(pieces)
                agent.may_end.set()
                live += b"".join([piece async for piece in pieces])
            await wait_until_stored(here)
            ended = await http.get("/runs/r1/events")
    assert live == ended.content
    await asyncio.wait_for(there.readers.wait_all_closed(WAIT), WAIT)
    assert len(readings) >= 2
    assert [reading for reading in readings if reading.ag_frame is not None] == []


@requirement("ws.interrupt", "replica.cancel")
async def test_a_run_elsewhere_gives_way_to_an_interrupting_one() -> None:
    replicas, agent = Replicas(), WaitingAgent(run_id_event)
    here, there = await replicas.start(agent), await replicas.start(brief)
    keeping = asyncio.create_task(here.leases.run())
    theirs = await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 2)
    async with serving(build_app(Settings(), there)) as url:
        client = OverWs(there, replicas.clock, url)
        socket = await client.connect()
        await send(socket, {"command": ATTACH})
        await receive(socket, 3)
        await send(socket, ask("t2", "r2", forwardedProps={"onBusy": "interrupt"}))
        assert frame_names(await receive(socket, 4)) == ["RUN_FINISHED r1", *whole("r2")]
        await client.close()
    assert status(theirs) == "cancelled"
    keeping.cancel()
    await asyncio.wait([keeping])
    await wait_until_stored(here)
