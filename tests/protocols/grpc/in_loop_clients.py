"""Clients that a test drives frame by frame, with the server in the event loop of the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import h2.events

from agui_container.main import build_app
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import WAIT, make_service
from tests.protocols.grpc.h2 import Raw, message
from tests.sse import http_client

RUN = "/kontekst.AgentService/Run"
STATUS = "/kontekst.DaemonService/GetStatus"
LOCALHOST = "127.0.0.1"

T = TypeVar("T")


@contextlib.asynccontextmanager
async def port_of(agent: object, timeout_keep_alive: float = WAIT, **settings: object) -> AsyncIterator[int]:
    chosen = Settings.model_validate(settings)
    app = build_app(chosen, make_service(agent, chosen))
    async with serving(app, timeout_keep_alive=timeout_keep_alive) as url:
        yield int(url.rpartition(":")[2])


async def beside(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking client function in a thread."""
    return await asyncio.to_thread(function, *arguments)


@contextlib.asynccontextmanager
async def raw(port: int, window: int | None = None, address: str = LOCALHOST) -> AsyncIterator[Raw]:
    with Raw(port, window=window, address=address) as client:
        await beside(client.until, h2.events.SettingsAcknowledged)
        yield client


async def begin_run(client: Raw, thread: str = "") -> int:
    """Start a run and wait for its first data."""
    stream = client.call(RUN)
    start = kontekst.StartRunCommand(prompt="hi", session_id=thread)
    client.data(stream, message(kontekst.RunCommand(start=start).SerializeToString()))
    await beside(client.until, h2.events.DataReceived)
    return stream


async def answers(port: int) -> bool:
    """Return True if the server answers another client over gRPC and over HTTP."""
    async with raw(port) as client, http_client(f"http://127.0.0.1:{port}") as http:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        return (await beside(client.status, stream))[0] == "0" and (await http.get("/ping")).is_success
