"""Runs that give way: open ones, which end so that a new run fits within the limits, and ended ones in memory.

Rule: only an open run whose readers have left gives way, the one whose last reader left first ends first. If an
identity is at its own limit, only its own runs give way. A run with a reader on another replica stays.

Rule: the oldest ended run is forgotten first, unless it has a reader here. Stores in memory forget the oldest thread
first (``app/agui_container/runtime/eviction_queue.py``).
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from agui_container.engine.admission.quota import Amount, Freed, IdentityQuota, Limit
from agui_container.ports import RunContext
from agui_container.runtime.eviction_queue import EvictionQueue


class RunPresence(Protocol):
    """Presence of the readers of a run."""

    @property
    def local(self) -> int:
        """Number of readers in this process."""

    def is_abandoned(self, now: float) -> bool:
        """Return True if the run has no reader on any replica."""


class EvictableRun(Hashable, Protocol):
    """A run, open or ended."""

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
        size_of: returns the bytes of the request of an open run.
    """

    def __init__(self, quota: IdentityQuota, size: int, size_of: Callable[[R], int]) -> None:
        self.runs: dict[R, None] = {}
        self._quota = quota
        self._size = size
        self._size_of = size_of
        self._counts, self._bytes = Freed(), Freed()

    def add(self, run: R) -> None:
        """Add a run."""
        self.runs[run] = None
        is_own = run.ctx.caller.identity == self._quota.identity
        for freed, amount in ((self._counts, 1), (self._bytes, self._size_of(run))):
            freed.all += amount
            freed.own += amount if is_own else 0

    def add_until_room(self, unread: UnreadRuns[R], now: float) -> None:
        """Add abandoned runs until the new run fits. Raises ``AppError`` RATE_LIMIT_EXCEEDED if it does not."""
        while (full := self._shortage()) is not None:
            oldest = next((run for run in unread.abandoned(now) if self._may_end(run, full)), None)
            if oldest is None:
                raise self._quota.refusal(full)
            self.add(oldest)

    def _shortage(self) -> Amount | None:
        """Return the amount that has no room for the new run when these runs have ended, or None."""
        runs = self._quota.shortage(Limit.RUNS, 1, self._counts)
        return runs or self._quota.shortage(Limit.REQUEST_BYTES, self._size, self._bytes)

    def _may_end(self, run: R, full: Amount) -> bool:
        """Return True if the end of a run frees what ``full`` lacks."""
        is_own = run.ctx.caller.identity == self._quota.identity
        return run not in self.runs and (is_own or not full.is_of_identity)


class EndedRuns(EvictionQueue[R]):
    """Ended runs in memory, in the order of their ends."""

    def surplus(self, quota: IdentityQuota) -> Iterator[R]:
        """Iterate the runs to forget, the oldest first, until the limits are met.

        The caller removes each of them, except one that is being stored. An identity, whose ``quota`` it is, leaves
        half of its bytes of events to its open runs. The runs are not copied, because a copy would touch each of them.
        """
        given: set[R] = set()
        while self._is_over(quota):
            may_go = (run for run in self if run not in given and self._may_go(run, quota))
            if (oldest := next(may_go, None)) is None:
                return
            given.add(oldest)
            yield oldest

    def _may_go(self, run: R, quota: IdentityQuota) -> bool:
        """Return True for a run without readers here, of this identity if only its limit is exceeded."""
        return not run.presence.local and (self.is_full or run.ctx.caller.identity == quota.identity)

    def _is_over(self, quota: IdentityQuota) -> bool:
        """Return True if a limit of the process or of an identity is exceeded."""
        amount = quota.amounts(Limit.LOG_BYTES)[0]
        return self.is_full or (amount.is_of_identity and amount.used > amount.most // 2)
