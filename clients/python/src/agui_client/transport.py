"""One interface for runs and commands over HTTP and over WebSocket."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import httpx
from ag_ui.core import RunErrorEvent
from httpx_sse import EventSource, ServerSentEvent

from agui_client.errors import AgentClientError, ConnectionDropped, RunFailedError, RunRefusedError
from agui_client.events import parse_frame
from agui_client.own_thread import in_thread

Frame = dict[str, object]
"""An event, or the answer to a command, as JSON."""

Provided = str | Callable[[], str | Awaitable[str]]
"""A value, or a function that makes one for each connection. A plain function may block, an ``async`` one may not."""

EVENT_STREAM = "text/event-stream"

RETRYABLE = frozenset({"SESSION_BUSY", "RATE_LIMIT_EXCEEDED", "INTERNAL_ERROR"})
"""Codes of AgentCore itself for which another attempt may succeed. AgentCore sends no ``retryable``."""

GATEWAY_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses of a gateway whose server does not answer at the moment."""

MAY_HAVE_PASSED = frozenset({502, 504})
"""Statuses after which the server may have got the request."""

SHOWN_CHARACTERS = 500
"""Characters of another body that are shown in the message of an error."""


@dataclass(frozen=True, slots=True)
class Received:
    """An event, and its number in the run from 1 on. ``seq`` is None if the server does not number events."""

    frame: Frame
    seq: int | None


class Transport(Protocol):
    """Sends requests to one server: the JSON of a run's input, or of a command."""

    def stream(self, request: str) -> AsyncGenerator[Received, None]:
        """Yield the events of a run up to its end, or up to the end of the connection.

        Raises ``RunRefusedError`` and ``ConnectionDropped``.
        """

    async def command(self, command: Frame) -> Frame:
        """Send a command, and return its result. Raises as ``stream`` does."""

    async def aclose(self) -> None:
        """Close all connections."""


async def provide(provided: Provided) -> str:
    """Return the value. Raises ``ConnectionDropped`` if its function fails, because that may need the network."""
    if isinstance(provided, str):
        return provided
    try:
        value = await in_thread(provided)
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        raise ConnectionDropped("The URL or token for a connection could not be made.", was_sent=False) from error


def refusal(fields: Mapping[str, object]) -> RunRefusedError:
    """Make an error of a refusal, which is a RUN_ERROR event or a control frame."""
    metadata = fields.get("metadata")
    facts = metadata if isinstance(metadata, Mapping) else fields
    code = _text(fields.get("code")) or "INTERNAL_ERROR"
    message = _text(fields.get("message")) or f"The server refused the request: {code}."
    retryable = facts.get("retryable")
    return RunRefusedError(
        code,
        message,
        retryable=retryable if isinstance(retryable, bool) else code in RETRYABLE,
        request_id=_text(facts.get("requestId")),
    )


def failed_run(event: RunErrorEvent) -> RunFailedError:
    facts = event.metadata or {}
    retryable, request_id = facts.get("retryable") is True, _text(facts.get("requestId"))
    return RunFailedError(event.code, event.message, retryable=retryable, request_id=request_id)


def unknown_command(command: Frame) -> RunRefusedError:
    """Make the error of a command that the server has not understood."""
    return RunRefusedError("UNKNOWN_COMMAND", f"The server does not know the command {command['type']}.")


def refused_response(status: int, body: bytes) -> ConnectionDropped | RunRefusedError:
    """Make an error of a response that is no success: of the server's own if the body has one."""
    try:
        for event in events_in(body):
            return refusal(parse_frame(event.data))
    except AgentClientError:
        pass  # the body of a gateway or of another server has a format of its own
    if status in GATEWAY_STATUSES:
        return ConnectionDropped(f"A gateway answered with status {status}.", was_sent=status in MAY_HAVE_PASSED)
    shown = " ".join(body.decode("utf-8", "replace")[:SHOWN_CHARACTERS].split())
    return RunRefusedError(f"HTTP_{status}", f"The request was answered with status {status}: {shown or 'no reason'}")


def events_in(body: bytes) -> Iterator[ServerSentEvent]:
    response = httpx.Response(200, headers={"Content-Type": EVENT_STREAM}, content=body)
    return (event for event in EventSource(response).iter_sse() if event.data)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
