"""Open runs that end so that a new run fits within the limits.

Rule: only a run whose readers have left gives way, the one whose last reader left first ends first. If an identity is
at its own limit, only its own runs give way. A run with a reader on another replica stays.

The oldest ended runs and threads in memory are forgotten first (``app/agui_container/runtime/eviction_queue.py``).
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from agui_container.engine.admission.quota import Amount, Freed, IdentityQuota, Limit
from agui_container.ports import RunContext


class RunPresence(Protocol):
    """Presence of the readers of a run."""

    def is_abandoned(self, now: float) -> bool:
        """Return True if the run has no reader on any replica."""


class EvictableRun(Protocol):
    """An open run."""

    @property
    def ctx(self) -> RunContext:
        """Context, with the caller."""

    @property
    def presence(self) -> RunPresence:
        """Readers of the run."""


R = TypeVar("R", bound=EvictableRun)


class UnreadRuns(Generic[R]):
    """Open runs that will be cancelled at the end of their grace, in the order in which their readers left."""

    def __init__(self) -> None:
        self._runs: dict[R, None] = {}

    def add(self, run: R) -> None:
        """Add a run whose last reader has left."""
        self.discard(run)
        self._runs[run] = None

    def discard(self, run: R) -> None:
        """Remove a run that is read again or has ended, if it is here."""
        self._runs.pop(run, None)

    def abandoned(self, now: float) -> Iterator[R]:
        """Iterate the runs that may end, in their order. Nothing may change during the iteration."""
        return (run for run in self._runs if run.presence.is_abandoned(now))


class EvictionPlan(Generic[R]):
    """Open runs that would end to make room for a new run, and the amounts that their ends free.

    Args:
        quota: what the identity of the new run has in use.
        size: bytes of the new run's request.
    """

    def __init__(self, quota: IdentityQuota, size: int) -> None:
        self.runs: dict[R, None] = {}
        self._quota = quota
        self._size = size
        self._counts, self._bytes = Freed(), Freed()

    def add(self, run: R, size: int) -> None:
        """Add a run, with the size of its request in bytes."""
        self.runs[run] = None
        is_own = run.ctx.caller.identity == self._quota.identity
        for freed, amount in ((self._counts, 1), (self._bytes, size)):
            freed.all += amount
            freed.own += amount if is_own else 0

    def shortage(self) -> Amount | None:
        """Return the amount that has no room for the new run when these runs have ended, or None."""
        runs = self._quota.shortage(Limit.RUNS, 1, self._counts)
        return runs or self._quota.shortage(Limit.REQUEST_BYTES, self._size, self._bytes)

    def may_end(self, run: R, full: Amount) -> bool:
        """Return True if the end of a run frees what ``full`` lacks."""
        is_own = run.ctx.caller.identity == self._quota.identity
        return run not in self.runs and (is_own or not full.is_of_identity)
