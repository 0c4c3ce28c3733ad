"""Open gRPC calls whose caller is not verified.

Rule: a call of health or reflection needs no token, and a call of an agent counts as unverified while its token is
verified. Such calls take no room of others. The oldest of them gives way to a new one, so that nobody can keep a health
check from being answered. A verified call of an agent counts as a socket instead.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.protocol import Stream

from agui_container.telemetry import RefusalLog

MAX_UNVERIFIED_CALLS = 400
"""Open calls of health, reflection and callers that are being verified, on all connections together."""

LIMIT_NAME = "unverifiedCalls"
"""Name of this limit in metrics and in the log."""


class UnverifiedCalls:
    """Calls whose caller is not verified. The name of a call is its stream."""

    def __init__(self) -> None:
        self._open: dict[Stream, None] = {}
        self._refusal_log = RefusalLog()

    @contextmanager
    def use(self, stream: Stream) -> Iterator[None]:
        """Count a call. If there are too many, the oldest one ends."""
        self._open[stream] = None
        if len(self._open) > MAX_UNVERIFIED_CALLS:
            self._end(next(iter(self._open)))
        try:
            yield
        finally:
            self._open.pop(stream, None)

    def _end(self, stream: Stream) -> None:
        self._refusal_log.report(LIMIT_NAME)
        del self._open[stream]
        if stream.wrapper is not None:
            stream.wrapper.cancel(
                GRPCError(Status.RESOURCE_EXHAUSTED, "Too many calls without a verified token are open.")
            )
