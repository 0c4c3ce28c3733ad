"""The server that a command talks to: a URL, the ARN of an AgentCore runtime, or an agent that is served meanwhile.

Rules:

- An agent that is served for a command has a process of its own, on loopback and a free port, which ends with the
  command. Signals of the terminal do not reach it, so that Ctrl-C cancels a run and never the server. Its threads are
  in the database of the project.
- All sessions of a command use one session of AgentCore, because another one has none of its threads.
"""

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import click
import httpx
from msgspec import Struct

from agui_client import Reconnect, Retry, SessionOptions, agentcore_url, new_session_id
from agui_client.agentcore import agentcore_region
from agui_client.caller import complete_url
from agui_container.cli.control_characters import without_controls
from agui_container.cli.failure import CommandFailed
from agui_container.cli.project_store import project_store
from agui_container.settings import SettingsError
from agui_container.settings_sources import load_with_origins

LOCAL_SERVER = "http://localhost:8080"
MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

START_SECONDS = 60.0
STOP_SECONDS = 12.0
"""Seconds for a served agent to start, and to end its runs and itself."""

PROBE_SECONDS = 0.05

AT_ONCE = Retry(give_up_after=0)
"""For commands that fail when the first attempt to connect does."""

server_argument = click.argument("server", default=LOCAL_SERVER)


class Target(Struct, frozen=True):
    """A server to which a command connects.

    Attributes:
        name: how the user named it.
        url: URL of the server, of HTTP or WebSocket.
        options: options of its sessions.
        read_log: returns the errors that an agent of this command has logged since the last call, with its tracebacks.
    """

    name: str
    url: str
    options: SessionOptions
    read_log: Callable[[], str] = str


@asynccontextmanager
async def open_target(
    name: str, retry: Retry, *, websocket: bool = False, token: str | None = None, session_id: str | None = None
) -> AsyncIterator[Target]:
    """Provide the server that a name means.

    Raises:
        CommandFailed: an agent cannot be served, or the name cannot be right.
    """
    options: SessionOptions = {"retry": retry}
    if token:
        options["token"] = token
    if MODULE.fullmatch(name):
        async with _serve(name) as (url, read_log):
            yield Target(name, with_transport(url, websocket=websocket), options, read_log)
        return
    url = with_transport(name, websocket=websocket)
    if session_id or agentcore_region(url):
        options["session_id"] = session_id or new_session_id()
    yield Target(name, url, options)


def retry_and_show(show: Callable[[str], object]) -> Retry:
    """Return the usual pauses between attempts to connect. The first failure of each drop is shown."""
    usual = Retry()

    def on_reconnect(failed: Reconnect) -> None:
        if failed.attempt == 1:
            show(without_controls(f"{failed.cause} Trying again for {usual.give_up_after:g} s."))

    return replace(usual, on_reconnect=on_reconnect)


def place_of(name: str) -> str:
    """Return what identifies a server, however its name is written: SSE and WebSocket have one place.

    An agent is that of the working folder. Raises ``CommandFailed`` if the name cannot be right.
    """
    if MODULE.fullmatch(name):
        return f"{Path.cwd()}:{name}"
    try:
        url = urlsplit(complete_url(with_transport(name, websocket=False)))
    except ValueError as error:
        raise CommandFailed(str(error)) from None
    path = url.path.removesuffix("/ws").removesuffix("/invocations").rstrip("/")
    return urlunsplit(url._replace(scheme=url.scheme.replace("ws", "http", 1), path=path))


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
async def _serve(agent: str) -> AsyncIterator[tuple[str, Callable[[], str]]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "agui_container", "serve", agent, "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        with path.open("wb") as log, path.open(encoding="utf-8", errors="replace") as written:
            process = subprocess.Popen(  # noqa: ASYNC220, S603 - it returns at once; the agent is what the user named
                command, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            url = f"http://127.0.0.1:{port}"
            try:
                if not await _is_ready(process, url):
                    raise CommandFailed(f"The agent could not be served.\n{written.read().strip()}")
                yield url, lambda: written.read().strip()
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(process.wait, STOP_SECONDS)
                process.kill()
                process.wait()


def environment() -> Mapping[str, str]:
    """Return the variables of a served agent: the database of the project, and a log of errors only.

    Raises:
        CommandFailed: the settings are wrong.
    """
    try:
        _, origins = load_with_origins()
    except SettingsError as error:
        raise CommandFailed(f"The agent could not be served.\ncannot start: {error}") from None
    store = project_store(origins)
    return {**os.environ, "AGUI_LOG_LEVEL": "error", **({"AGUI_STORE": store} if store else {})}


async def _is_ready(process: "subprocess.Popen[bytes]", url: str) -> bool:
    """Wait until the server answers, or has ended. Raises ``CommandFailed`` if it does neither."""
    try:
        async with asyncio.timeout(START_SECONDS), httpx.AsyncClient(trust_env=False) as http:
            while process.poll() is None:
                with suppress(httpx.TransportError):
                    (await http.get(f"{url}/ping")).raise_for_status()
                    return True
                await asyncio.sleep(PROBE_SECONDS)
    except TimeoutError:
        raise CommandFailed(f"The agent did not start within {START_SECONDS:g} s.") from None
    return False
