"""SIGTERM while runs are open: every stream ends legally, and the process ends well."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.behaviour.over_grpc import SUCCESS, begin_dialogues, open_dialogue
from tests.engine.doubles import Json
from tests.server.sockets.client import HttpExchange, ask, get, is_last, is_text, post, request, run_input, text_of
from tests.server.sockets.process import AGENT, ServerProcess
from tests.websocket import receive_until, socket_to

pytestmark = pytest.mark.wire

RUNS = 10
TICKS = 100
"""Pieces of a run that goes on by itself, for a second."""

BLOCKING = "tests.server.sockets.agents:blocking"


async def sse_to_the_end(port: int, text: str, started: Callable[[], None]) -> list[Json]:
    """Return the events of a run over SSE. A response that is cut off raises."""
    exchange = await (await HttpExchange.open(port, post(run_input(text)))).until(is_text)
    started()
    await exchange.rest()
    await exchange.close()
    return exchange.events


async def ws_to_the_end(port: int, text: str, started: Callable[[], None]) -> list[Json]:
    """Return the events of a run over a WebSocket, and check that the server closes it in order."""
    async with socket_to(port) as connection:
        await connection.send(json.dumps(run_input(text)))
        events = await receive_until(connection, is_text)
        started()
        events += await receive_until(connection, is_last)
        await connection.wait_closed()
        assert connection.close_code == 1012
    return events


async def ws_until_the_end(port: int, text: str, started: Callable[[], None]) -> list[Json]:
    async with socket_to(port) as connection:
        await connection.send(json.dumps(run_input(text)))
        events = await receive_until(connection, is_text)
        started()
        return events + await receive_until(connection, is_last)


async def streams_at_sigterm(server: ServerProcess, text: str) -> list[list[Json]]:
    """Open runs over both transports, stop the server when all have begun, and read them to their ends."""
    begun = asyncio.Semaphore(0)
    readers = [
        asyncio.create_task(read(server.port, text, begun.release))
        for read in (sse_to_the_end, ws_to_the_end)
        for _ in range(RUNS)
    ]
    for _ in readers:
        await begun.acquire()
    server.term()
    return await asyncio.gather(*readers)


def assert_shut_down(events: list[Json]) -> None:
    types = [event["type"] for event in events]
    assert types[0] == "RUN_STARTED"
    assert types[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert sum(map(is_last, events)) == 1
    assert events[-1]["code"] == "SHUTTING_DOWN"


async def stop_during_runs(agent: str, text: str) -> None:
    with ServerProcess(AGUI_AGENT=agent) as server:
        for events in await streams_at_sigterm(server, text):
            assert_shut_down(events)
        assert await asyncio.to_thread(server.wait) == 0
        assert server.faults == []


async def test_sigterm_ends_silent_blocked_and_busy_runs_legally_and_the_process_well() -> None:
    """Silent agents, agents that block their threads, agents at full speed. Side by side, because drains take time."""
    await asyncio.gather(
        stop_during_runs(AGENT, "hold"), stop_during_runs(BLOCKING, "hold"), stop_during_runs(AGENT, "churn")
    )


async def test_a_process_that_is_stopped_for_a_while_sends_its_streams_on() -> None:
    async with AsyncExitStack() as closing:
        server = closing.enter_context(ServerProcess())
        begun = asyncio.Semaphore(0)
        readers = [
            asyncio.create_task(read(server.port, f"tick {TICKS}", begun.release))
            for read in (sse_to_the_end, ws_until_the_end)
        ]
        dialogues = await begin_dialogues(server.port, f"tick {TICKS}", closing)
        for _ in readers:
            await begun.acquire()
        with server.stopped():
            waiting = await HttpExchange.open(server.port, post(run_input(f"tick {TICKS}")))
            await waiting.writer.drain()
            dialogues.append(open_dialogue("kontekst", server.port, "late", closing))
            await dialogues[-1].begin(f"tick {TICKS}")
        for events in [*await asyncio.gather(*readers), (await waiting.rest()).events]:
            assert text_of(events) == "".join(f"{number} " for number in range(TICKS))
            assert events[-1]["type"] == "RUN_FINISHED"
        for reply in await asyncio.gather(*(dialogue.reply() for dialogue in dialogues)):
            assert (reply.text, reply.end) == ("".join(f"{number} " for number in range(TICKS)), SUCCESS)
        assert server.faults == []


async def end_while_a_run_continues(agent: str, named: str) -> None:
    with ServerProcess(AGUI_AGENT=f"tests.server.sockets.agents:{agent}") as server:
        held = await (await HttpExchange.open(server.port, post(run_input("go", runId="r1")))).until(is_text)
        server.term()
        assert_shut_down((await held.rest()).events)
        await held.close()
        assert await asyncio.to_thread(server.wait) == 0
        assert f"shutdown: abandoned {named}" in server.log[-1]
        assert server.faults == []


async def end_while_the_event_loop_is_blocked() -> None:
    with ServerProcess() as server:
        held = await HttpExchange.open(server.port, post(run_input("stall 3600")))
        await asyncio.to_thread(server.wait_for, lambda line: "stalls" in line)
        server.term()
        assert await asyncio.to_thread(server.wait) == 0
        await held.close()
        assert "shutdown: abandoned tasks still running" in server.log[-1]


async def end_while_store_agent_and_reader_hang(folder: Path) -> None:
    file = folder / "runs.db"
    with (
        ServerProcess(AGUI_STORE=f"sqlite:///{file}", AGUI_AGENT="tests.server.sockets.agents:stubborn") as server,
        contextlib.closing(sqlite3.connect(file, isolation_level=None)) as lock,
    ):
        reading = await (await HttpExchange.open(server.port, post(run_input("go", runId="r1")))).until(is_text)
        stuck = await HttpExchange.open(server.port, request("GET", "/runs/r1/events"), window=4096)
        lock.execute("BEGIN EXCLUSIVE")
        server.term()
        await reading.rest()
        assert [event["code"] for event in reading.events[-1:]] == ["STORE_UNAVAILABLE"]
        assert await asyncio.to_thread(server.wait) == 0
        await stuck.close()
        assert "shutdown: abandoned tasks still running" in server.log[-1]
        assert server.faults == []


async def end_while_readers_do_not_read() -> None:
    with ServerProcess() as server:
        document = run_input("bulk 5000")
        slow = await (await HttpExchange.open(server.port, post(document), window=4096)).head()
        connection = await socket_to(server.port, max_queue=1, compression=None)
        await connection.send(json.dumps(document))
        await ask(server.port, request("GET", f"/runs/{document['runId']}/events"))
        server.term()
        status = await asyncio.to_thread(server.wait)
        connection.transport.abort()
        await slow.close()
        assert status == 0


async def test_the_process_ends_whatever_does_not_end_in_it(tmp_path: Path) -> None:
    """Side by side, because each waits for the deadline of the shutdown."""
    async with asyncio.TaskGroup() as ends:
        for end in (
            end_while_a_run_continues("stubborn", "tasks still running count=1 names='run r1'"),
            end_while_a_run_continues("threaded", "threads still running"),
            end_while_the_event_loop_is_blocked(),
            end_while_store_agent_and_reader_hang(tmp_path),
            end_while_readers_do_not_read(),
        ):
            ends.create_task(end)


async def test_a_task_that_wants_to_end_the_process_fails_its_run_only() -> None:
    with ServerProcess(AGUI_AGENT="tests.server.sockets.agents:leaving") as server:
        held = await (await HttpExchange.open(server.port, post(run_input("hold")))).until(is_text)
        for text in ("exit", "interrupt"):
            events = (await ask(server.port, post(run_input(text)))).events
            async with socket_to(server.port) as connection:
                await connection.send(json.dumps(run_input(text)))
                over_socket = await receive_until(connection, is_last)
            for seen in (events, over_socket):
                assert [event["type"] for event in seen][-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
                assert seen[-1]["code"] == "AGENT_ERROR"
        assert (await get(server.port, "/ping"))["status"] == "HealthyBusy"
        server.term()
        assert_shut_down((await held.rest()).events)
        await held.close()
        assert await asyncio.to_thread(server.wait) == 0


@pytest.mark.parametrize(("error_status", "status"), [("http", 503), ("stream", 200)])
async def test_a_request_whose_body_is_still_arriving_is_refused_at_the_end(error_status: str, status: int) -> None:
    with ServerProcess(AGUI_ERROR_STATUS=error_status) as server:
        headers = ("Content-Length: 100", "Expect: 100-continue", "X-Request-Id: mine")
        exchange = await HttpExchange.open(server.port, request("POST", "/invocations", b"{", headers))
        assert b"100 Continue" in await exchange.reader.readuntil(b"\r\n\r\n")
        server.term()
        await exchange.rest()
        await exchange.close()
        assert (exchange.status, exchange.headers["x-request-id"]) == (status, "mine")
        assert [event["code"] for event in exchange.events] == ["SHUTTING_DOWN"]
        assert await asyncio.to_thread(server.wait) == 0
        assert server.faults == []


async def test_ctrl_c_stops_an_idle_server_at_once_and_quietly() -> None:
    with ServerProcess() as server:
        server.interrupt()
        assert server.wait() == 0
        assert server.faults == []
