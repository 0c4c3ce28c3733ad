"""Open gRPC calls, in two kinds: those of agents, and those whose caller is not verified.

Rule: a call of health or reflection needs no token, and a call of an agent counts as unverified while its token is
verified. Such calls take no room of others. The oldest of them gives way to a new one, so that nobody can keep a health
check from being answered.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.protocol import Stream

from agui_container.engine.admission.quota import Limit, Quota
from agui_container.telemetry import RefusalLog, count_refusal

MAX_UNVERIFIED_CALLS = 400
"""Open calls of health, reflection and callers that are being verified, on all connections together."""

LIMIT_NAME = "unverifiedCalls"
"""Name of this limit in metrics and in the log."""


class OpenCalls(Protocol):
    """Open calls of one kind."""

    def use(self, identity: str, stream: Stream, /) -> AbstractContextManager[object]:
        """Count a call until the end of the block. Raises ``AppError`` if there is no room for it."""


class AgentCalls:
    """Calls of agents. They count as sockets. Implements ``OpenCalls``."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota

    def use(self, identity: str, _: Stream) -> AbstractContextManager[object]:
        """Count a call. Raises ``AppError`` RATE_LIMIT_EXCEEDED if there are too many."""
        return self._quota.of(identity).acquire(Limit.SOCKETS)


class UnverifiedCalls:
    """Calls whose caller is not verified. The name of a call is its stream. Implements ``OpenCalls``."""

    def __init__(self) -> None:
        self._open: dict[Stream, None] = {}
        self._refusal_log = RefusalLog()

    @contextmanager
    def use(self, _: str, stream: Stream) -> Iterator[None]:
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
        count_refusal(LIMIT_NAME, "process")
        del self._open[stream]
        if stream.wrapper is not None:
            stream.wrapper.cancel(
                GRPCError(Status.RESOURCE_EXHAUSTED, "Too many calls without a verified token are open.")
            )
