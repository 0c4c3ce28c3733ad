"""Limits of time and number, made small. The server is in the test's event loop, and its clients are beside it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import h2.events
import httpx
import pytest
from ag_ui.core import RunAgentInput

from agui_container.ports import Item
from agui_container.protocols.grpc import call, connection
from tests.engine.doubles import WAIT, wait_for_event
from tests.protocols.clients import serving_clients
from tests.protocols.grpc.h2 import STATUS, Raw, answers, begin_run, beside, raw
from tests.sse import http_client
from tests.waiting_agent import WaitingAgent

pytestmark = pytest.mark.wire

MOMENT = 0.2
INVALID, EXHAUSTED = "3", "8"
SLOW = "slow"


def read_without_answers(client: Raw) -> None:
    """Take bytes until the server closes, and answer nothing, as a machine that is cut off."""
    with contextlib.suppress(ConnectionError):
        while client.socket.recv(65_536):
            pass


async def test_a_client_that_stalls_inside_the_preface_is_closed() -> None:
    async with serving_clients(WaitingAgent(rest=" there"), options={"timeout_keep_alive": MOMENT}) as clients:
        with socket.create_connection(("127.0.0.1", clients.port), timeout=WAIT) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n")
            assert await beside(client.recv, 100) == b""
        assert await answers_once(clients.port)


async def answers_once(port: int) -> bool:
    """Ask until there is an answer, because a request on a busy machine may begin after the moment, too."""
    while True:
        with contextlib.suppress(httpx.TransportError, OSError):
            return await answers(port)


def ping_soon(monkeypatch: pytest.MonkeyPatch, *, answer_within: float) -> None:
    soon = replace(
        connection.CONFIG,
        _keepalive_time=MOMENT,
        _keepalive_timeout=answer_within,
        _http2_min_sent_ping_interval_without_data=MOMENT / 2,
    )
    monkeypatch.setattr(connection, "CONFIG", soon)


async def test_a_client_that_answers_no_ping_loses_its_connection_and_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ping_soon(monkeypatch, answer_within=MOMENT)
    agent = WaitingAgent(rest=" there")
    async with serving_clients(agent, on_disconnect="cancel") as clients, raw(clients.port) as client:
        await begin_run(client)
        await beside(read_without_answers, client)
        await wait_for_event(agent.cut_off)


@pytest.mark.parametrize("path", [STATUS, "/roz.v1.AgentService/WatchTeam", "/grpc.health.v1.Health/Check"])
async def test_a_call_whose_one_request_never_comes_is_ended(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(call, "READ_SECONDS", MOMENT)
    async with serving_clients(WaitingAgent()) as clients, raw(clients.port) as client:
        status, words = await beside(client.status, client.call(path))
        assert (status, words) == (INVALID, "The message did not arrive in full.")


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

    async with serving_clients(agent) as clients, raw(clients.port, window=1_000) as slow, raw(clients.port) as other:
        patient = await begin_run(other)
        with monkeypatch.context() as patch:
            patch.setattr(call, "STALLED_SECONDS", MOMENT)
            stream = await begin_run(slow, thread=SLOW)
            await wait_for_event(has_ended)  # nothing holds the run
            status, words = await beside(status_without_reading, slow, stream)
        assert (status, "slowly" in words) == (EXHAUSTED, True)
        assert len(slow.body(stream)) <= 2_000
        waiting.may_end.set()
        assert (await beside(other.status, patient))[0] == "0"
        async with http_client(clients.url) as http:
            (run,) = [run for run in (await http.get("/runs")).json()["runs"] if run["threadId"] == SLOW]
            assert run["status"] == "finished"


def status_without_reading(client: Raw, stream: int) -> tuple[str, str]:
    """The status of a call whose data the client does not take any further."""
    while not any(isinstance(event, h2.events.TrailersReceived) for event in client.events):
        assert client.read(acknowledge=False)
    return client.status(stream)
