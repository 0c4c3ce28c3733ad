"""An MCP server that is a child process: its standard input and output carry one JSON-RPC message per line.

The ``mcp`` package has a transport of its own for it. This one differs in five points: a line may have
``MAX_MESSAGE_BYTES`` at most, a line that is no UTF-8 or no message does not end the session, halves of symbols are
replaced, an answer that cannot be read ends its request, and the end of the process takes a bounded time and leaves
nothing of its process group behind.

Source: "stdio" and "Shutdown" in the Model Context Protocol specification.
"""

import asyncio
import logging
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Final, Self

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from agui_container.runtime.log_values import format_fields
from agui_container.runtime.surrogates import repair_escapes
from agui_container.tools.mcp.faults import MAX_MESSAGE_BYTES, McpFault, failed_answer
from agui_container.tools.mcp.messages import ERROR_FIRST, UNREADABLE_ERROR, repair_message
from agui_container.tools.mcp.servers import StdioServer

logger = logging.getLogger(__name__)

EXIT_SECONDS = 1.0
"""Seconds that a process has to end after the end of its input."""

TERMINATE_SECONDS = 0.5
"""Seconds that the process group has to end after SIGTERM. It is killed then."""

EDGE = 200
"""Bytes at both ends of a line in which the id of its request is searched."""

VERSION: Final = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
ID_FIRST: Final = re.compile(rb'\s*\{\s*%b"id"\s*:\s*(\d+)\s*,\s*%b"(?:result|error)"' % (VERSION, VERSION))
RESULT_FIRST: Final = re.compile(rb'\s*\{\s*%b"(?:result|error)"' % VERSION)
ID_LAST: Final = re.compile(rb'"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@asynccontextmanager
async def open_process(server: StdioServer) -> AsyncGenerator[tuple["LineReader", "LineWriter"]]:
    """Start the process, and stop it at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=sys.stderr,
        env=get_default_environment() | dict(server.env),
        start_new_session=True,
        limit=MAX_MESSAGE_BYTES,
    )
    try:
        if process.stdin is None or process.stdout is None:  # cannot be: both are pipes
            raise OSError("the process has no pipes")
        yield LineReader(process.stdout, server.name), LineWriter(process.stdin, process.pid)
    finally:
        await stop_process(process)


async def stop_process(process: Process) -> None:
    """Close the input of a process, wait for its end, and end what is left of its process group.

    The last step takes no time and cannot be cancelled, so that nothing is left even if the event loop ends now.
    """
    try:
        if process.stdin is not None:
            process.stdin.close()
        await _wait(process, EXIT_SECONDS)
        if signal_group(process.pid, signal.SIGTERM):
            await _wait(process, TERMINATE_SECONDS)
    finally:
        signal_group(process.pid, signal.SIGKILL)
    await _wait(process, EXIT_SECONDS)


async def _wait(process: Process, seconds: float) -> None:
    """Wait until the process and all others that have its output have ended, for a limited time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await process.wait()


def signal_group(leader: int, number: signal.Signals) -> bool:
    """Send a signal to a process group. Return false if it has no process."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # a member belongs to another user
        return True
    return True


class LineReader:
    """Messages from a process. Lines that are no messages are skipped."""

    def __init__(self, output: asyncio.StreamReader, server: str) -> None:
        self._output = output
        self._server = server

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while True:
            line, is_complete = await self._read_line()
            if not line:
                raise StopAsyncIteration
            message = _parse(line) if is_complete else _failed(line, McpFault.TOO_LARGE)
            if message is not None:
                return message
            if line.strip():
                fields = {"server": self._server, "begin": line[:EDGE].decode(errors="replace").strip()}
                logger.info("line of an MCP server is no message %s", format_fields(fields))

    receive = __anext__

    async def aclose(self) -> None:
        """Do nothing. The pipe is closed with the process."""

    async def _read_line(self) -> tuple[bytes, bool]:
        """Return the next line and true, or both ends of a line over the limit and false. Empty at the end."""
        begin = end = b""
        while True:
            try:
                rest = await self._output.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                chunk = await self._output.readexactly(max(1, error.consumed))
                begin, end = begin or chunk[:EDGE], (end + chunk[-EDGE:])[-EDGE:]
                continue
            except asyncio.IncompleteReadError as error:
                rest = error.partial
            return (begin + (end + rest)[-EDGE:], False) if begin else (rest, True)


def _parse(line: bytes) -> SessionMessage | None:
    """Return the message of a line. A result that cannot be read ends its request. None if the line is no message."""
    text = repair_message(repair_escapes(line).decode(errors="replace").encode())
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError:
        return _failed(line, McpFault.UNREADABLE)


def _failed(line: bytes, fault: McpFault) -> SessionMessage | None:
    """Return the message that ends the request which the line answers. None if the line is no answer.

    An error ends it as an error, and a result with the fault.
    """
    found = ID_FIRST.match(line[:EDGE])
    if found is None and RESULT_FIRST.match(line[:EDGE]):
        found = ID_LAST.search(line[-EDGE:])
    if found is None:
        return None
    if ERROR_FIRST.match(line):
        return SessionMessage(
            JSONRPCError(
                jsonrpc="2.0", id=int(found[1]), error=ErrorData(code=INTERNAL_ERROR, message=UNREADABLE_ERROR)
            )
        )
    return failed_answer(int(found[1]), fault)


class LineWriter:
    """Messages to a process."""

    def __init__(self, input_: asyncio.StreamWriter, leader: int) -> None:
        self._input = input_
        self._leader = leader

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message.

        Raises:
            BrokenResourceError: the process does not read. It is ended, because it cannot be asked anything else.
        """
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self._input.write(text.encode() + b"\n")
            await self._input.drain()
        except (OSError, RuntimeError) as error:
            signal_group(self._leader, signal.SIGTERM)
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Close the input of the process."""
        self._input.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        await self.aclose()
