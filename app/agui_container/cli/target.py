"""The server that a command talks to: a URL, the ARN of an AgentCore runtime, or an agent that is served meanwhile.

Rule: all sessions of a command use one session of AgentCore, because another one has none of its threads.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import click
from msgspec import Struct

from agui_client import Reconnect, Retry, Session, SessionOptions, agentcore_url, new_session_id
from agui_client.agentcore import agentcore_region
from agui_client.caller import complete_url
from agui_container.cli.failure import without_controls
from agui_container.cli.options import token_option

LOCAL_SERVER = "http://localhost:8080"
MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

AT_ONCE = Retry(give_up_after=0)
"""For commands that fail when the first attempt to connect does."""

session_option = click.option("--session", "session_id", metavar="ID", help="Use this AgentCore session.")
ws_option = click.option("--ws", "websocket", is_flag=True, help="Use WebSocket in place of SSE.")


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

    def session(self, thread_id: str | None = None) -> Session:
        return Session(self.url, thread_id=thread_id, **self.options)


class ServerOptions(Struct, frozen=True):
    """What the command line says about a server."""

    name: str
    token: str | None = None
    session_id: str | None = None
    websocket: bool = False

    @property
    def place(self) -> str:
        """What identifies the server for this user: its URL, or the agent and the working folder."""
        is_agent = MODULE.fullmatch(self.name)
        return f"{Path.cwd()}:{self.name}" if is_agent else complete_url(with_transport(self.name, websocket=False))

    @asynccontextmanager
    async def open(self, retry: Retry) -> AsyncIterator[Target]:
        """Provide the server.

        Raises:
            CommandFailed: an agent cannot be served.
            ValueError: the name cannot be right.
        """
        options: SessionOptions = {"retry": retry}
        if self.token:
            options["token"] = self.token
        if MODULE.fullmatch(self.name):
            from agui_container.cli.project import serve_agent  # noqa: PLC0415 - only an agent needs the server

            async with serve_agent(self.name) as url:
                yield Target(self.name, with_transport(url, websocket=self.websocket), options)
            return
        url = with_transport(self.name, websocket=self.websocket)
        if self.session_id or agentcore_region(url):
            options["session_id"] = self.session_id or new_session_id()
        yield Target(self.name, url, options)


def server_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of every command that talks to a server. With the argument ``server`` they are one value."""

    @wraps(command)
    def run(
        server: str, token: str | None, session_id: str | None, *, websocket: bool, **arguments: object
    ) -> int | None:
        return command(ServerOptions(server, token, session_id, websocket), **arguments)

    return ws_option(token_option(session_option(run)))


def retry_and_show(show: Callable[[str], object]) -> Retry:
    """Return the usual pauses between attempts to connect. The first failure of each drop is shown."""
    usual = Retry()

    def on_reconnect(failed: Reconnect) -> None:
        if failed.attempt == 1:
            show(without_controls(f"{str(failed.cause).rstrip('.')}. Trying again for {usual.give_up_after:g} s."))

    return replace(usual, on_reconnect=on_reconnect)


def with_transport(name: str, *, websocket: bool) -> str:
    """Return the URL of a server for SSE or WebSocket. A name without a scheme, as ``localhost:8080``, is of HTTP.

    Raises:
        ValueError: this is no ARN of an AgentCore runtime.
    """
    if name.startswith("arn:"):
        return agentcore_url(name, websocket=websocket)
    url = urlsplit(name if "://" in name else f"http://{name}")
    if not websocket or url.scheme not in {"http", "https"}:
        return urlunsplit(url)
    path = url.path.rstrip("/").removesuffix("/invocations") + "/ws"
    return urlunsplit(url._replace(scheme=url.scheme.replace("http", "ws", 1), path=path))
