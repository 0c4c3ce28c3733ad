"""One interface for runs and commands over HTTP and over WebSocket."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ag_ui.core import RunAgentInput

from agui_client.errors import AgentClientError, ConnectionDropped, RunRefusedError
from agui_client.events import parse_frame
from agui_client.own_thread import in_thread
from agui_client.sse import EventStreamParser

Frame = dict[str, object]
"""An event, or the answer to a command, as JSON."""

Provided = str | Callable[[], str | Awaitable[str]]
"""A value, or a function that makes one for each connection. A plain function may block, an ``async`` one may not."""

RETRYABLE = frozenset({"SESSION_BUSY", "RATE_LIMIT_EXCEEDED", "INTERNAL_ERROR"})
"""Codes of AgentCore itself for which another attempt may succeed. AgentCore sends no ``retryable``."""

GATEWAY_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses of a gateway whose server does not answer at the moment."""

MAY_HAVE_PASSED = frozenset({502, 504})
"""Statuses after which the server may have got the request."""

SHOWN_BYTES = 500
"""Bytes of another body that are shown in the message of an error."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Read a run that the server knows, from the event after number ``after``."""

    thread_id: str
    run_id: str
    after: int

    @property
    def command(self) -> Frame:
        """The command of the server."""
        return {"type": "attach", "threadId": self.thread_id, "runId": self.run_id, "after": self.after}


@dataclass(frozen=True, slots=True)
class Received:
    """An event, and its number in the run from 1 on. ``seq`` is None if the server does not number events."""

    frame: Frame
    seq: int | None


class Transport(Protocol):
    """Sends requests to one server."""

    merges_deltas: bool
    """True if the server may merge adjacent deltas of one message. The merged one has the number of its last."""

    def stream(self, request: RunAgentInput | Attach) -> AsyncGenerator[Received, None]:
        """Yield the events of a run up to its end, or up to the end of the connection.

        Raises:
            RunRefusedError: the server refuses the request.
            ConnectionDropped: the connection fails.
        """
        ...

    async def command(self, command: Frame) -> Frame:
        """Send a command, and return its result. Raises as ``stream`` does."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


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


def refused_response(status: int, body: bytes) -> ConnectionDropped | RunRefusedError:
    """Make an error of a response that is no success: of the server's own if the body has one."""
    try:
        for event in EventStreamParser().feed(body):
            return refusal(parse_frame(event.data))
    except AgentClientError:
        pass  # the body of a gateway or of another server has a format of its own
    if status in GATEWAY_STATUSES:
        return ConnectionDropped(f"A gateway answered with status {status}.", was_sent=status in MAY_HAVE_PASSED)
    shown = " ".join(body[:SHOWN_BYTES].decode("utf-8", "replace").split())
    return RunRefusedError(f"HTTP_{status}", f"The request was answered with status {status}: {shown or 'no reason'}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
