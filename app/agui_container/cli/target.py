"""The server that a command talks to: a URL, the ARN of an AgentCore runtime, or an agent that is served meanwhile.

Rule: an agent that is served for a command has a process of its own, on loopback and a free port, which ends with the
command. Signals of the terminal do not reach it, so that Ctrl-C cancels a run and never the server.
"""

import asyncio
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import IO
from urllib.parse import urlsplit, urlunsplit

import click
import httpx
from msgspec import Struct

from agui_client import SessionOptions, agentcore_url
from agui_container.cli.failure import CommandFailed

LOCAL_SERVER = "http://localhost:8080"
MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

START_SECONDS = 60.0
STOP_SECONDS = 12.0
"""Seconds for a served agent to start, and to end its runs and itself."""

PROBE_SECONDS = 0.05

target_argument = click.argument("target", metavar="[URL|ARN|MODULE:ATTRIBUTE]", default=LOCAL_SERVER)


class Target(Struct, frozen=True):
    """A server to which a command connects.

    Attributes:
        name: how the user named it.
        url: URL of the server, of HTTP or WebSocket.
        options: options of its sessions.
    """

    name: str
    url: str
    options: SessionOptions


@asynccontextmanager
async def open_target(
    name: str, *, websocket: bool = False, token: str | None = None, session_id: str | None = None
) -> AsyncIterator[Target]:
    """Provide the server that a name means. Raises ``CommandFailed`` if an agent cannot be served."""
    options: SessionOptions = {}
    if token:
        options["token"] = token
    if session_id:
        options["session_id"] = session_id
    if MODULE.fullmatch(name):
        async with _serve(name) as url:
            yield Target(name, with_transport(url, websocket=websocket), options)
    else:
        yield Target(name, with_transport(name, websocket=websocket), options)


def with_transport(name: str, *, websocket: bool) -> str:
    """Return the URL of a server for SSE or WebSocket. A name without a scheme, as ``localhost:8080``, is of HTTP.

    Raises:
        CommandFailed: this is no ARN of an AgentCore runtime.
    """
    if name.startswith("arn:"):
        try:
            return agentcore_url(name, websocket=websocket)
        except ValueError as error:
            raise CommandFailed(str(error)) from None
    url = urlsplit(name if "://" in name else f"http://{name}")
    if not websocket or url.scheme not in {"http", "https"}:
        return urlunsplit(url)
    path = url.path.rstrip("/").removesuffix("/invocations") + "/ws"
    return urlunsplit(url._replace(scheme=url.scheme.replace("http", "ws", 1), path=path))


@asynccontextmanager
async def _serve(agent: str) -> AsyncIterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", "agui_container", "serve", agent, "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - it returns at once; the agent is what the user named
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        url = f"http://127.0.0.1:{port}"
        try:
            await _wait_until_ready(process, url, log)
            yield url
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, STOP_SECONDS)
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def _wait_until_ready(process: "subprocess.Popen[bytes]", url: str, log: IO[bytes]) -> None:
    try:
        async with asyncio.timeout(START_SECONDS), httpx.AsyncClient(trust_env=False) as http:
            while process.poll() is None:
                with suppress(httpx.TransportError):
                    (await http.get(f"{url}/ping")).raise_for_status()
                    return
                await asyncio.sleep(PROBE_SECONDS)
    except TimeoutError:
        raise CommandFailed(f"The agent did not start within {START_SECONDS:g} s.") from None
    log.seek(0)
    raise CommandFailed(f"The agent could not be served.\n{log.read().decode(errors='replace').strip()}")
