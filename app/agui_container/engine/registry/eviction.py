"""Eviction of open runs: runs that end so that a new run fits within the limits.

Rule: only a run whose readers have left is evicted. The run whose last reader left first ends first, a caller's own
runs before those of others. A run with a reader on another replica stays.
"""

from collections.abc import Iterator

from agui_container.engine.caller_usage import CallerUsage, FreedAmounts, ReachedLimit, Resource
from agui_container.engine.run.run import Run


class UnreadRuns:
    """Open runs that will be cancelled at the end of their grace, in the order in which their readers left."""

    def __init__(self) -> None:
        self._runs: dict[Run, None] = {}
        self._by_account: dict[str, dict[Run, None]] = {}

    def add(self, run: Run) -> None:
        """Add a run whose last reader has left."""
        self.discard(run)
        self._runs[run] = None
        self._by_account.setdefault(run.ctx.caller.account, {})[run] = None

    def discard(self, run: Run) -> None:
        """Remove a run that is read again or has ended, if it is here."""
        if run not in self._runs:
            return
        account = run.ctx.caller.account
        del self._runs[run], self._by_account[account][run]
        if not self._by_account[account]:
            del self._by_account[account]

    def abandoned(self, account: str, now: float) -> Iterator[Run]:
        """Iterate the runs that may be evicted, those of the account first. Nothing may change during the iteration."""
        own = self._by_account.get(account, {})
        others = (run for run in self._runs if run not in own)
        return (run for runs in (own, others) for run in runs if run.presence.is_abandoned(now))


class EvictionPlan:
    """Open runs that would end to make room for a new run, and the resources that their ends free.

    Args:
        account: caller of the new run.
    """

    def __init__(self, account: str) -> None:
        self.runs: dict[Run, None] = {}
        self._account = account
        self._counts, self._bytes = FreedAmounts(), FreedAmounts()

    def add(self, run: Run, size: int) -> None:
        """Add a run, with the size of its request in bytes."""
        self.runs[run] = None
        for freed, amount in ((self._counts, 1), (self._bytes, size)):
            freed.all += amount
            freed.own += amount if run.ctx.caller.account == self._account else 0

    def reached_limit(self, usage: CallerUsage, size: int) -> ReachedLimit | None:
        """Return the limit that leaves no room for the new run when these runs have ended, or None."""
        return usage.reached_limit(Resource.RUNS, 1, self._counts) or usage.reached_limit(
            Resource.REQUEST_BYTES, size, self._bytes
        )
