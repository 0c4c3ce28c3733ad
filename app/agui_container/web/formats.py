"""Events as Server-Sent Events, the one format of HTTP bodies, and events for legacy clients.

Rules:

- One event per frame, and every line ends with LF alone, because the official client splits on LF LF only.
- A body is SSE whatever a request accepts, because AgentCore's contract promises it and the official client asks for
  nothing else. The field ``id`` is the event's number in its run.
- A legacy client was built on a version of AG-UI before 1.0: its ``RunAgentInput`` has no ``protocolVersion``, over
  HTTP or over a WebSocket. It gets the same events with the same ids in the same order. Parts that its schemas reject,
  with which the whole run would fail there, are removed, nothing is invented, and each loss is logged.

Sources: AG-UI spec 1.1, basic/transports/http-sse and basic/versioning; the schemas of ``@ag-ui/core`` 0.0.59.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from agui_container.log_values import format_fields
from agui_container.protocol import envelope
from agui_container.protocol.parser import CommandRequest, Request
from agui_container.threads import offload_if_large

logger = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"

HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}

STREAM_HEADERS = (
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"content-type", b"text/event-stream; charset=utf-8"),
)
"""Headers of a streaming response in the form of ASGI, without the request id."""

COMMENT = b": keep-alive\n\n"
"""Bytes that keep a silent stream alive."""


def sse_frames(data: Sequence[bytes], first: int) -> bytes:
    """Return SSE frames: ``id: SEQ``, ``data: JSON``, an empty line. ``first`` is the ``seq`` of the first event."""
    return b"".join([b"id: %d\ndata: %b\n\n" % numbered for numbered in enumerate(data, first)])


def sse_error_frame(data: bytes) -> bytes:
    """Return the SSE frame for a refused request. It has no ``id`` because it belongs to no run."""
    return b"data: %b\n\n" % data


# --- legacy clients ---------------------------------------------------------------------------------------------------


def needs_reduction(batch: envelope.Batch) -> bool:
    return any(event.startswith(REDUCED_PREFIXES) for event in batch.data)


async def reduced(batch: envelope.Batch) -> envelope.Batch:
    size = sum(len(event) for event in batch.data if event.startswith(REDUCED_PREFIXES))
    return batch._replace(data=await offload_if_large(size, lambda: [reduce_event(event) for event in batch.data]))


def is_legacy_client(request: Request) -> bool:
    """A client that sends a bare command, which AG-UI does not have, was written for this server."""
    if isinstance(request, CommandRequest) and request.is_bare:
        return False
    return request.protocol_version is None


def reduce_event(data: bytes) -> bytes:
    """Return the JSON of an event in a form that a legacy client accepts. Most events are returned unchanged."""
    if not data.startswith(REDUCED_PREFIXES):
        return data
    event = orjson.loads(data)
    REDUCERS[event["type"]](event)
    return orjson.dumps(event)


def _reduce_outcome(event: dict[str, Any]) -> None:
    """Remove an outcome that is new in 1.0. Without one, the client runs the open calls, as before 1.0."""
    match event.get("outcome"):
        case {"type": "success", "pendingToolCallIds": _}:
            del event["outcome"]
        case {"type": "cancelled"}:
            del event["outcome"]
            fields = {"run": event["runId"], "outcome": "cancelled"}
            logger.warning("legacy client: outcome removed %s", format_fields(fields))


def _reduce_content(event: dict[str, Any]) -> None:
    """Replace the content parts of a tool result by their text, and media by a line that names them."""
    parts = event["content"]
    if isinstance(parts, list):
        event["content"] = "\n".join(part["text"] if part["type"] == "text" else _named(part) for part in parts)
        if any(part["type"] != "text" for part in parts):
            logger.warning(
                "legacy client: media of a tool result removed %s", format_fields({"call": event["toolCallId"]})
            )


def _named(part: Mapping[str, Any]) -> str:
    metadata, source = part.get("metadata"), part.get("source") or {}
    name = metadata.get("filename") if isinstance(metadata, dict) else None
    about = ", ".join(str(each) for each in (name, source.get("mimeType")) if each)
    return f"[{part['type']} left out{': ' if about else ''}{about}]"


def _reduce_messages(event: dict[str, Any]) -> None:
    for message in event["messages"]:
        if message["role"] == "tool":
            _reduce_content(message)


REDUCERS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "RUN_FINISHED": _reduce_outcome,
    "TOOL_CALL_RESULT": _reduce_content,
    "MESSAGES_SNAPSHOT": _reduce_messages,
}
"""Functions by event type. Each reduces a decoded event in place."""

REDUCED_PREFIXES = tuple(b'{"type":"%b"' % name.encode() for name in REDUCERS)
"""First bytes of the events that may have to be reduced."""
