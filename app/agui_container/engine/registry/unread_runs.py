"""Open runs without a reader in this process, which give way to new runs when a limit is reached.

Rule: the run whose reader left first goes first, a caller's own runs before those of others. A run with a reader on
another replica stays.
"""

from collections.abc import Iterator

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
        """Iterate the runs that may give way, those of the account first. Nothing may change during the iteration."""
        own = self._by_account.get(account, {})
        others = (run for run in self._runs if run not in own)
        return (run for runs in (own, others) for run in runs if run.presence.is_abandoned(now))
