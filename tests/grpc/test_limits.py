"""Limits of time and number, made small. The server is in the test's event loop, and its clients are beside it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TypeVar

import h2.events
import pytest
from ag_ui.core import RunAgentInput
from h2.errors import ErrorCodes

from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.settings import Settings
from agui_container.transports.grpc import call, connection, server
from agui_container.transports.grpc.gen.kontekst import kontekst_pb2 as kontekst
from tests.behaviour.over_sse import http_client
from tests.behaviour.server import serving
from tests.engine.doubles import WAIT, happened, make_service
from tests.grpc.h2 import Raw, message
from tests.requirements import requirement
from tests.waiting_agent import WaitingAgent

RUN = "/kontekst.AgentService/Run"
STATUS = "/kontekst.DaemonService/GetStatus"
MOMENT = 0.2
EXHAUSTED = "8"
SLOW = "slow"

T = TypeVar("T")


@contextlib.asynccontextmanager
async def port_of(agent: object, timeout_keep_alive: float = WAIT, **settings: object) -> AsyncIterator[int]:
    """A server around an agent."""
    chosen = Settings.model_validate(settings)
    app = build_app(chosen, make_service(agent, chosen))
    async with serving(app, timeout_keep_alive=timeout_keep_alive) as url:
        yield int(url.rpartition(":")[2])


async def beside(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking client function in a thread."""
    return await asyncio.to_thread(function, *arguments)


@contextlib.asynccontextmanager
async def raw(port: int, window: int | None = None) -> AsyncIterator[Raw]:
    """A client that has shaken hands."""
    with Raw(port, window=window) as client:
        await beside(client.until, h2.events.SettingsAcknowledged)
        yield client


async def begun(client: Raw, thread: str = "") -> int:
    """A call that has said something."""
    stream = client.call(RUN)
    start = kontekst.StartRunCommand(prompt="hi", session_id=thread)
    client.data(stream, message(kontekst.RunCommand(start=start).SerializeToString()))
    await beside(client.until, h2.events.DataReceived)
    return stream


async def answers(port: int) -> bool:
    """True if the server answers somebody else over gRPC and over HTTP."""
    async with raw(port) as client, http_client(f"http://127.0.0.1:{port}") as http:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        return (await beside(client.status, stream))[0] == "0" and (await http.get("/ping")).is_success


def read_without_answers(client: Raw) -> None:
    """Take bytes until the server closes, and answer nothing, as a machine that is cut off."""
    with contextlib.suppress(ConnectionError):
        while client.socket.recv(65_536):
            pass


# --- time -------------------------------------------------------------------------------------------------------------


@requirement("grpc.gone", "grpc.port")
async def test_a_client_that_stalls_inside_the_preface_is_closed() -> None:
    async with port_of(WaitingAgent(rest=" there"), timeout_keep_alive=MOMENT) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n")
            assert await beside(client.recv, 100) == b""
        assert await answers(port)


def ping_soon(monkeypatch: pytest.MonkeyPatch, *, answer_within: float) -> None:
    """Have clients pinged after a moment of silence."""
    soon = replace(
        connection.CONFIG,
        _keepalive_time=MOMENT,
        _keepalive_timeout=answer_within,
        _http2_min_sent_ping_interval_without_data=MOMENT / 2,
    )
    monkeypatch.setattr(connection, "CONFIG", soon)


@requirement("grpc.gone", "drop.cancel")
async def test_a_client_that_answers_no_ping_loses_its_connection_and_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ping_soon(monkeypatch, answer_within=MOMENT)
    agent = WaitingAgent(rest=" there")
    async with port_of(agent, on_disconnect="cancel") as port, raw(port) as client:
        await begun(client)
        await beside(read_without_answers, client)
        await happened(agent.cut_off)


@requirement("grpc.gone")
async def test_a_client_that_answers_pings_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    ping_soon(monkeypatch, answer_within=WAIT)
    agent = WaitingAgent(rest=" there")
    async with port_of(agent, on_disconnect="cancel") as port, raw(port) as client:
        stream = await begun(client)
        pings = 0
        while pings < 4:
            await beside(client.read)
            pings = sum(isinstance(event, h2.events.PingReceived) for event in client.events)
        agent.may_end.set()
        assert (await beside(client.status, stream))[0] == "0"


@requirement("grpc.gone")
async def test_a_connection_without_calls_is_closed_and_one_with_a_call_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = WaitingAgent(rest=" there")
    async with port_of(agent) as port, raw(port) as busy:
        stream = await begun(busy)
        monkeypatch.setattr(connection, "IDLE_SECONDS", MOMENT)
        async with raw(port) as idle:
            assert await beside(idle.goodbye) is ErrorCodes.NO_ERROR
        agent.may_end.set()
        assert (await beside(busy.status, stream))[0] == "0"
        assert await beside(busy.goodbye) is ErrorCodes.NO_ERROR


@requirement("grpc.slow")
async def test_a_client_that_takes_nothing_loses_its_call_and_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, has_ended = WaitingAgent(rest=" there"), asyncio.Event()

    async def agent(run_input: RunAgentInput) -> AsyncIterator[Item]:
        if run_input.thread_id != SLOW:
            async for item in waiting.run(run_input):
                yield item
            return
        for _ in range(1_000):
            yield "x" * 1_000
        has_ended.set()

    async with port_of(agent) as port, raw(port, window=1_000) as slow, raw(port) as other:
        patient = await begun(other)
        with monkeypatch.context() as patch:
            patch.setattr(call, "SEND_SECONDS", MOMENT)
            stream = await begun(slow, thread=SLOW)
            await happened(has_ended)  # nothing holds the run
            status, words = await beside(status_without_reading, slow, stream)
        assert (status, "slowly" in words) == (EXHAUSTED, True)
        assert len(slow.body(stream)) <= 2_000
        waiting.may_end.set()
        assert (await beside(other.status, patient))[0] == "0"
        async with http_client(f"http://127.0.0.1:{port}") as http:
            (run,) = [run for run in (await http.get("/runs")).json()["runs"] if run["threadId"] == SLOW]
            assert run["status"] == "finished"


def status_without_reading(client: Raw, stream: int) -> tuple[str, str]:
    """The status of a call whose data the client does not take any further."""
    while not any(isinstance(event, h2.events.TrailersReceived) for event in client.events):
        assert client.read(acknowledge=False)
    return client.status(stream)


# --- number -----------------------------------------------------------------------------------------------------------


@requirement("grpc.floods")
async def test_connections_above_the_limit_are_told_to_go_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    agent = WaitingAgent(rest=" there")
    async with port_of(agent) as port, raw(port) as first:
        stream = await begun(first)
        async with raw(port):
            with Raw(port) as third:
                assert await beside(third.goodbye) is ErrorCodes.ENHANCE_YOUR_CALM
        agent.may_end.set()
        assert (await beside(first.status, stream))[0] == "0"
        await eventually_answers(port)


async def eventually_answers(port: int) -> None:
    """The server answers, once it has noticed that a connection is gone."""
    async with asyncio.timeout(WAIT):
        while True:
            with contextlib.suppress(ConnectionError):
                if await answers(port):
                    return
