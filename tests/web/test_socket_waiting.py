"""Frames that come while something else of the same connection waits."""

import asyncio
from typing import Any

import pytest

from agui_container.engine.engine import Engine
from agui_container.ports.records import Page, ThreadKey, ThreadRecord
from tests.conftest import Serve
from tests.engine.doubles import WAIT, ask, caller, eventually, forever
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.web.sockets import begin_run, frame_names, whole
from tests.websocket import receive, send

ENQUEUE = {"onBusy": "enqueue"}


class HeldLists:
    """Lists of threads, which the store gives when they may end."""

    def __init__(self, service: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may_end = asyncio.Event(), asyncio.Event()
        self.calls = 0
        monkeypatch.setattr(service.cluster.store, "threads", self._list)

    async def _list(self, *_: object, **__: object) -> Page[ThreadRecord]:
        self.calls += 1
        self.asked.set()
        await self.may_end.wait()
        return Page([])


async def test_a_cancel_waits_for_nothing_that_was_asked_before(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, client, socket = await begin_run(serve)
    lists = HeldLists(client.service, monkeypatch)
    await send(socket, {"id": 1, "command": {"type": "threads.list"}}, ask(run="r2", forwardedProps=ENQUEUE))
    await send(socket, {"id": 2, "command": {"type": "cancel", "runId": "r1"}}, {"type": "ping", "id": 3})
    frames = await receive(socket, 3)
    assert sorted(frame_names(frames)) == ["RUN_FINISHED r1", "pong 3", "result r1"]
    lists.may_end.set()
    agent.may_end.set()
    assert frame_names(await receive(socket, 4)) == ["result 1", *whole("r2")]


async def test_a_cancel_waits_for_the_run_that_it_names(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = await serve(forever)
    lists = HeldLists(client.service, monkeypatch)
    socket = await client.connect()
    await send(socket, {"id": 1, "command": {"type": "threads.list"}}, ask())
    await send(socket, {"id": 2, "command": {"type": "cancel", "runId": "r1"}}, {"type": "ping", "id": 3})
    assert frame_names(await receive(socket, 1)) == ["pong 3"]
    lists.may_end.set()
    assert sorted(frame_names(await receive(socket, 4))) == [
        "RUN_FINISHED r1",
        "RUN_STARTED r1",
        "result 1",
        "result r1",
    ]


@pytest.mark.parametrize("last_frame", [None, {"type": "ping", "id": 4}, {"command": 1}], ids=["run", "ping", "error"])
async def test_a_frame_that_cannot_be_sent_loses_no_request_from_before_the_client_left(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, last_frame: dict[str, Any] | None
) -> None:
    agent, client, socket = await begin_run(serve, on_disconnect="continue")
    lists = HeldLists(client.service, monkeypatch)
    await send(socket, {"id": 1, "command": {"type": "threads.list"}}, ask("t2", "r2", forwardedProps=ENQUEUE))
    await asyncio.wait_for(lists.asked.wait(), WAIT)
    if last_frame is not None:
        await send(socket, last_frame)
    socket.transport.abort()
    await asyncio.wait_for(socket.wait_closed(), WAIT)
    other = await client.connect()
    await send(other, {"type": "ping", "id": 5})
    assert frame_names(await receive(other, 1)) == ["pong 5"]  # the server has noticed the end of the first socket
    agent.may_end.set()  # the run ends, and its last event cannot be sent
    await eventually(lambda: not client.service.registry.open_queue(ThreadKey("everybody", "t1")))
    await send(other, {"type": "ping", "id": 6})
    assert frame_names(await receive(other, 1)) == ["pong 6"]  # the attempt to send it has failed
    lists.may_end.set()
    await eventually(lambda: client.service.runs.find_local(caller(), "t2", "r2") is not None)
    await client.service.drain(0)


async def test_answers_that_nobody_can_receive_are_not_made(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = await serve(WaitingAgent(run_id_event), on_disconnect="continue")
    lists = HeldLists(client.service, monkeypatch)
    socket = await client.connect()
    await send(socket, *({"id": number, "command": {"type": "threads.list"}} for number in range(9)), ask())
    await asyncio.wait_for(lists.asked.wait(), WAIT)
    socket.transport.abort()
    await asyncio.wait_for(socket.wait_closed(), WAIT)
    ping = await client.connect()
    await send(ping, {"type": "ping", "id": 1})
    assert frame_names(await receive(ping, 1)) == ["pong 1"]  # the server has noticed the end of the first socket
    lists.may_end.set()
    await eventually(lambda: client.service.registry.open_queue(ThreadKey("everybody", "t1")))
    assert lists.calls == 1
    await client.service.drain(0)


async def test_ids_of_a_run_that_is_gone_are_free_though_its_events_still_wait(serve: Serve) -> None:
    agent, client, socket = await begin_run(serve)
    await send(socket, ask(run="r2", thread="t2", forwardedProps=ENQUEUE))
    await eventually(
        lambda: [len(run.log) for run in client.service.registry.open_queue(ThreadKey("everybody", "t2"))] == [2]
    )
    await send(socket, {"id": 1, "command": {"type": "threads.delete", "threadId": "t2"}})
    assert frame_names(await receive(socket, 1)) == ["result 1"]
    await send(socket, ask(run="r2", thread="t2", forwardedProps=ENQUEUE))
    await eventually(lambda: client.service.registry.open_queue(ThreadKey("everybody", "t2")))
    agent.may_end.set()
    frames = frame_names(await receive(socket, 7))
    assert frames[0] == "RUN_FINISHED r1"
    assert frames.count("RUN_STARTED r2") == 2
    assert frames[-3:] == whole("r2")
