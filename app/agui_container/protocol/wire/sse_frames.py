"""Frames of Server-Sent Events.

Rule: one event per frame, and every line ends with LF alone, because the official client splits on LF LF only.

Source: AG-UI spec 1.1, basic/transports/http-sse.
"""

from collections.abc import Sequence


def sse_frames(data: Sequence[bytes], first: int) -> bytes:
    """Return SSE frames: ``id: SEQ``, ``data: JSON``, an empty line. ``first`` is the ``seq`` of the first event."""
    return b"".join([b"id: %d\ndata: %b\n\n" % numbered for numbered in enumerate(data, first)])


def sse_error_frame(data: bytes) -> bytes:
    """Return the SSE frame for a refused request. It has no ``id`` because it belongs to no run."""
    return b"data: %b\n\n" % data
