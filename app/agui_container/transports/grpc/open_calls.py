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

from agui_container.engine.caller_usage import CallerUsages, Resource
from agui_container.runtime.shares import EvictionQueue
from agui_container.telemetry import RefusalLog, count_refusal

MAX_UNVERIFIED_CALLS = 400
"""Open calls of health, reflection and callers that are being verified, on all connections together."""

LIMIT_NAME = "unverifiedCalls"
"""Name of this limit in metrics and in the log."""


class OpenCalls(Protocol):
    """Open calls of one kind."""

    def use(self, account: str, stream: Stream, /) -> AbstractContextManager[None]:
        """Count a call until the end of the block. Raises ``AppError`` if there is no room for it."""


class AgentCalls:
    """Calls of agents. They count as sockets of their callers. Implements ``OpenCalls``."""

    def __init__(self, usages: CallerUsages) -> None:
        self._usages = usages

    def use(self, account: str, _: Stream) -> AbstractContextManager[None]:
        """Count a call. Raises ``AppError`` RATE_LIMIT_EXCEEDED if its caller has too many sockets."""
        return self._usages.of(account).use(Resource.SOCKETS)


class UnverifiedCalls:
    """Calls whose caller is not verified. The name of a call is its stream. Implements ``OpenCalls``."""

    def __init__(self) -> None:
        self._open = EvictionQueue[Stream](MAX_UNVERIFIED_CALLS, max_bytes=0)
        self._accounts: dict[Stream, str] = {}
        self._refusal_log = RefusalLog()

    @contextmanager
    def use(self, account: str, stream: Stream) -> Iterator[None]:
        """Count a call. If there are too many, the oldest one of the caller with the most of them ends."""
        self._open.put(stream, account, 0)
        self._accounts[stream] = account
        if self._open.is_full:
            self._end(next(self._open.candidates()))
        try:
            yield
        finally:
            self._remove(stream)

    def _end(self, stream: Stream) -> None:
        self._refusal_log.report(LIMIT_NAME, self._accounts[stream])
        count_refusal(LIMIT_NAME, "process")
        self._remove(stream)
        if stream.wrapper is not None:
            stream.wrapper.cancel(
                GRPCError(Status.RESOURCE_EXHAUSTED, "Too many calls without a verified token are open.")
            )

    def _remove(self, stream: Stream) -> None:
        self._open.remove(stream)
        self._accounts.pop(stream, None)
