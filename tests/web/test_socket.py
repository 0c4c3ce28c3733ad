"""WebSocket alone: control frames, and several runs on one connection."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from agui_container.ports import Item
from agui_container.ports.records import ThreadKey
from agui_container.stores.memory import MemoryStore
from agui_container.web.websocket import MAX_WAITING
from tests.conftest import Serve
from tests.engine.doubles import ask, caller, wait_for_event
from tests.engine.replicas import hold_calls
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.web.sockets import begin_run, brief, frame_names, open_socket, whole
from tests.websocket import receive, send


@pytest.mark.parametrize(
    "bad", ["", "{", "[]", "data: {}\n\n", '{"command":{"type":"fly"}}', '{"threadId":"t"}', json.dumps(ask()).encode()]
)
async def test_a_bad_frame_is_answered_and_the_connection_lives(serve: Serve, bad: str | bytes) -> None:
    _, socket = await open_socket(serve, brief)
    await send(socket, bad, ask())
    error, *events = await receive(socket, 4)
    assert (error["control"], error["code"], error["retryable"]) == ("error", "VALIDATION_ERROR", False)
    assert error["message"]
    assert error["requestId"]
    assert frame_names(events) == whole("r1")


async def test_a_run_during_a_run_is_refused(serve: Serve) -> None:
    agent, _, socket = await begin_run(serve)
    await send(socket, ask("t2", "r2"))
    [error] = await receive(socket, 1)
    assert (error["code"], error["threadId"], error["runId"], error["retryable"]) == ("THREAD_BUSY", "t2", "r2", True)
    agent.may_end.set()
    assert frame_names(await receive(socket, 1)) == ["RUN_FINISHED r1"]


async def test_an_interrupting_run_follows_at_once(serve: Serve) -> None:
    _, _, socket = await begin_run(serve)
    await send(socket, ask("t2", "r2", forwardedProps={"onBusy": "interrupt"}))
    frames = await receive(socket, 3)
    assert frame_names(frames) == ["RUN_FINISHED r1", "RUN_STARTED r2", "CUSTOM r2"]
    assert frames[0]["outcome"] == {"type": "cancelled"}


async def test_a_run_that_may_not_wait_here_is_not_started(serve: Serve) -> None:
    _, socket = await open_socket(serve, WaitingAgent(run_id_event), on_busy="enqueue")
    await send(socket, *(ask(f"t{number}", f"r{number}") for number in range(MAX_WAITING + 2)))
    frames = await receive(socket, 3)
    assert "error" in [frame.get("control") for frame in frames]
    await send(socket, {"command": {"type": "cancel", "runId": f"r{MAX_WAITING + 1}"}, "id": 1})
    assert [frame["code"] for frame in await receive(socket, 1)] == ["RUN_NOT_FOUND"]


@pytest.mark.parametrize("on_busy", ["reject", "enqueue", "interrupt"])
async def test_a_retry_of_the_run_that_streams_harms_nothing(serve: Serve, on_busy: str) -> None:
    agent, _, socket = await begin_run(serve, on_busy=on_busy)
    await send(socket, ask(), ask(), {"id": 1, "command": {"type": "threads.list"}})
    assert frame_names(await receive(socket, 1)) == ["result 1"]
    agent.may_end.set()
    [finished] = await receive(socket, 1)
    assert finished["outcome"] == {"type": "success"}
    await send(socket, ask(run="r2"))
    assert frame_names(await receive(socket, 3)) == whole("r2")


async def test_a_retry_of_a_run_that_waits_brings_it_once(serve: Serve) -> None:
    agent, _, socket = await begin_run(serve, on_busy="enqueue")
    await send(socket, ask("t2", "r2"), ask("t2", "r2"), ask("t3", "r2"))
    agent.may_end.set()
    frames = await receive(socket, 7)
    assert frame_names(frames) == ["RUN_FINISHED r1", *whole("r2"), *whole("r2")]
    assert [frame["threadId"] for frame in frames if frame["type"] == "RUN_STARTED"] == ["t2", "t3"]


async def test_a_run_that_streams_is_not_attached_to_on_the_same_connection(serve: Serve) -> None:
    agent, client, socket = await begin_run(serve)
    await send(socket, {"command": {"type": "attach", "runId": "r1"}})
    assert frame_names(await receive(socket, 1)) == ["error THREAD_BUSY"]
    assert (await client.service.runs.find(caller(), "t1", "r1"))["readers"] == 1
    agent.may_end.set()
    assert frame_names(await receive(socket, 1)) == ["RUN_FINISHED r1"]


@pytest.mark.parametrize("key", [7, "seven", 0, {"a": 1}])
async def test_answers_carry_the_commands_id(serve: Serve, key: object) -> None:
    _, _, socket = await begin_run(serve)
    await send(
        socket,
        {"type": "ping", "id": key},
        {"command": {"type": "capabilities"}, "id": key},
        {"command": {"type": "cancel", "runId": "nobody"}, "id": key},
    )
    pong, result, error = await receive(socket, 3)
    assert pong == {"control": "pong", "id": key}
    assert (result["control"], result["id"], result["command"]) == ("result", key, "capabilities")
    assert (error["control"], error["id"], error["code"]) == ("error", key, "RUN_NOT_FOUND")


async def test_refusals_of_malformed_frames_carry_their_ids(serve: Serve) -> None:
    _, socket = await open_socket(serve, brief)
    await send(socket, {"command": {"type": "threads.fork"}, "id": 7}, {"command": None, "id": 8}, {"id": 9})
    assert [frame["id"] for frame in await receive(socket, 3)] == [7, 8, 9]


@pytest.mark.parametrize("fault", [RuntimeError("secret"), TimeoutError("secret"), OSError("secret")], ids=repr)
async def test_a_fault_of_the_server_is_said_and_the_connection_goes_on(
    fault: Exception, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = await serve(brief)

    async def broken(*_: object) -> None:
        raise fault

    socket = await client.connect()
    with monkeypatch.context() as patched:
        patched.setattr(client.service, "admit", broken)
        await send(socket, ask())
        [control] = await receive(socket, 1)
    assert (control["control"], control["code"], control["runId"]) == ("error", "INTERNAL_ERROR", "r1")
    assert "secret" not in json.dumps(control)
    await send(socket, ask())
    assert frame_names(await receive(socket, 3)) == whole("r1")


CANCEL = {"id": 1, "command": {"type": "cancel"}}
ATTACH = {"id": 1, "command": {"type": "attach"}}


async def test_a_cancel_without_ids_ends_the_run_of_this_connection(serve: Serve) -> None:
    _, client, socket = await begin_run(serve)
    other = await client.connect()
    await send(other, ask("t2", "r2"))
    await receive(other, 2)
    await send(socket, CANCEL)
    frames = sorted(await receive(socket, 2), key=lambda frame: "control" in frame)
    assert frame_names(frames) == ["RUN_FINISHED r1", "result r1"]
    assert frames[0]["outcome"] == {"type": "cancelled"}
    assert (frames[1]["id"], frames[1]["command"], frames[1]["status"]) == (1, "cancel", "cancelled")
    assert [run.status for run in client.service.registry.open_queue(ThreadKey("everybody", "t2"))] == ["running"]


async def test_a_cancel_without_ids_ends_the_run_that_is_being_admitted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = await serve(WaitingAgent(run_id_event))
    store = client.service.cluster.store
    assert isinstance(store, MemoryStore)
    is_asked, may_claim = hold_calls(monkeypatch, store, "begin")
    socket = await client.connect()
    await send(socket, ask())
    await wait_for_event(is_asked)
    await send(socket, CANCEL)
    assert frame_names(await receive(socket, 1)) == ["result r1"]
    may_claim.set()
    assert frame_names(await receive(socket, 2)) == ["RUN_STARTED r1", "RUN_FINISHED r1"]


async def test_a_cancel_without_ids_behind_an_answer_ends_the_run_that_continues(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        if asked.resume:
            await asyncio.Event().wait()
        outcome = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="choice")])
        yield RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id, outcome=outcome)

    _, client = await serve(agent)
    store = client.service.cluster.store
    assert isinstance(store, MemoryStore)
    socket = await client.connect()
    await send(socket, ask())
    assert frame_names(await receive(socket, 2)) == ["RUN_STARTED r1", "RUN_FINISHED r1"]
    is_asked, may_claim = hold_calls(monkeypatch, store, "begin")
    await send(socket, ask(resume=[{"interruptId": "i", "status": "resolved"}]))
    await wait_for_event(is_asked)
    await send(socket, CANCEL, {"type": "ping", "id": 2})
    assert frame_names(await receive(socket, 1)) == ["pong 2"]
    may_claim.set()
    frames = await receive(socket, 3)
    assert [frame["outcome"]["type"] for frame in frames if frame.get("type") == "RUN_FINISHED"] == ["cancelled"]


async def test_of_several_runs_the_one_that_streams_is_cancelled(serve: Serve) -> None:
    agent, _, socket = await begin_run(serve, on_busy="enqueue")
    await send(socket, ask("t2", "r2"))
    await send(socket, CANCEL)
    frames = frame_names(await receive(socket, 4))
    assert sorted(frames) == ["CUSTOM r2", "RUN_FINISHED r1", "RUN_STARTED r2", "result r1"]
    agent.may_end.set()
    assert frame_names(await receive(socket, 1)) == ["RUN_FINISHED r2"]


async def test_a_cancel_without_ids_needs_an_open_run_of_this_connection(serve: Serve) -> None:
    agent = WaitingAgent(run_id_event)
    _, client = await serve(agent)
    socket, other = await client.connect(), await client.connect()
    await send(other, ask("t2", "r2"))
    await receive(other, 2)
    await send(socket, CANCEL)
    assert frame_names(await receive(socket, 1)) == ["error RUN_NOT_FOUND"]
    await send(socket, {"command": {"type": "attach", "runId": "r2"}})  # it reads that run and has not started it
    await receive(socket, 3)
    await send(socket, CANCEL)
    assert frame_names(await receive(socket, 1)) == ["error RUN_NOT_FOUND"]
    agent.may_end.set()
    assert frame_names(await receive(socket, 1)) == ["RUN_FINISHED r2"]
    await send(socket, ask())
    await receive(socket, 3)
    await send(socket, CANCEL)
    assert frame_names(await receive(socket, 1)) == ["error RUN_NOT_FOUND"]


async def test_an_attach_without_ids_reads_the_last_run_of_this_connections_thread(serve: Serve) -> None:
    _, client = await serve(brief)
    socket, other = await client.connect(), await client.connect()
    await send(socket, ATTACH)
    assert frame_names(await receive(socket, 1)) == ["error RUN_NOT_FOUND"]
    await send(socket, ask())
    await receive(socket, 3)
    await send(other, ask(run="r2"))
    await receive(other, 3)
    await send(other, ask("t2", "r3"))
    await receive(other, 3)
    await send(socket, ATTACH)
    frames = await receive(socket, 4)
    assert frame_names([frame for frame in frames if "type" in frame]) == whole("r2")
    assert frame_names([frame for frame in frames if "control" in frame]) == ["result r2"]
