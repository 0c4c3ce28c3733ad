"""Events as Server-Sent Events, the one format of HTTP bodies.

Rule: one event per frame, and every line ends with LF alone, because the official client splits on LF LF only.

Rule: a body is SSE whatever a request accepts, because AgentCore's contract promises it and the official client asks
for nothing else. The field ``id`` is the event's number in its run.

Source: AG-UI spec 1.1, basic/transports/http-sse.
"""

from collections.abc import Sequence

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
