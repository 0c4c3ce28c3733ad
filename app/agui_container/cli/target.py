"""The server that a command talks to: a URL, the ARN of an AgentCore runtime, or an agent that is served meanwhile.

Rule: all sessions of a command use one session of AgentCore, because another one has none of its threads.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import click
from msgspec import Struct

from agui_client import Reconnect, Retry, SessionOptions, agentcore_url, new_session_id
from agui_client.agentcore import agentcore_region
from agui_client.caller import complete_url
from agui_container.cli.failure import CommandFailed, without_controls

LOCAL_SERVER = "http://localhost:8080"
MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

AT_ONCE = Retry(give_up_after=0)
"""For commands that fail when the first attempt to connect does."""

server_argument = click.argument("server", default=LOCAL_SERVER)


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
        from agui_container.cli.project import serve_agent  # noqa: PLC0415 - only an agent of the folder needs the server

        async with serve_agent(name) as url:
            yield Target(name, with_transport(url, websocket=websocket), options)
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
            show(without_controls(f"{str(failed.cause).rstrip('.')}. Trying again for {usual.give_up_after:g} s."))

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
