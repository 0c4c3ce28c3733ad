"""Transports to an MCP server: those of the ``mcp`` package, with their responses and their standard error observed.

Rule: the package reports 401, 403, 429 and 500 as one error without a status, and sends a request in the context of its
caller. So each request notes the status of its own response.
"""

import inspect
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from threading import Thread
from typing import Any, TextIO

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from msgspec import Struct

from agui_container.log_values import format_fields
from agui_container.tools.mcp.open_call import OpenCall
from agui_container.tools.mcp.servers import HttpServer, Server, StdioServer

logger = logging.getLogger(__name__)

MAX_EVENT_BYTES = 10_000_000
"""Bytes of one event of a server. A photo takes a few million; the package's default is one million."""

MAX_LINE = 1_000
"""Maximum characters of a logged line."""

# Version 2.1, which Strands requires, has no such limit.
_HAS_LIMIT = "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
_LIMIT: dict[str, Any] = {"max_sse_event_size": MAX_EVENT_BYTES} if _HAS_LIMIT else {}


class McpRequest(Struct):
    """A request to a server: the call that it makes, if it is one, the status of its response, and the challenge.

    The status is 0 without a response.
    """

    call: OpenCall | None = None
    status: int = 0
    challenge: str = ""

    @property
    def is_refused(self) -> bool:
        return self.status in (401, 403)


REQUEST: ContextVar[McpRequest | None] = ContextVar("REQUEST", default=None)
"""The request of the current task. The package handles its response, and a server's questions, in its context."""


def open_transport(server: Server) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    return open_http(server) if isinstance(server, HttpServer) else start_process(server)


@asynccontextmanager
async def open_http(server: HttpServer) -> AsyncGenerator[tuple[Any, Any]]:
    timeout = httpx2.Timeout(server.connect_timeout, read=None)  # each call has a limit of its own
    hooks = {"response": [note_response]}
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(str(server.url), http_client=client, **_LIMIT) as streams,
    ):
        yield streams


async def note_response(response: httpx2.Response) -> None:
    request = REQUEST.get()
    if request is not None:
        request.status = response.status_code
        request.challenge = response.headers.get("www-authenticate", "")


@asynccontextmanager
async def start_process(server: StdioServer) -> AsyncGenerator[tuple[Any, Any]]:
    parameters = StdioServerParameters(
        command=server.command, args=list(server.args), env=dict(server.env), encoding_error_handler="replace"
    )
    read, write = os.pipe()
    Thread(target=log_lines, args=(os.fdopen(read, errors="replace"), server.name), daemon=True).start()
    with os.fdopen(write, "w") as errlog:
        async with stdio_client(parameters, errlog=errlog) as streams:
            errlog.close()  # the process has its own copy, whose end is the end of the log
            yield streams


def log_lines(file: TextIO, server: str) -> None:
    """Log the lines that a process writes, with the name of its server, until it ends."""
    with file:
        for line in iter(partial(file.readline, MAX_LINE), ""):
            if line.strip():
                logger.info("MCP server wrote %s", format_fields({"server": server, "line": line.strip()}))
