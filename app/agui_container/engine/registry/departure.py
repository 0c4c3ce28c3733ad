"""Open runs that end to make room for a new one."""

from agui_container.engine.caller_ledger import CallerLedger, Freed, ReachedLimit, Resource
from agui_container.engine.run.run import Run


class Departure:
    """Runs that end to make room for a new one, and what they give back.

    Args:
        account: caller of the new run.
    """

    def __init__(self, account: str) -> None:
        self.runs: dict[Run, None] = {}
        self._account = account
        self._counts, self._bytes = Freed(), Freed()

    def add(self, run: Run, size: int) -> None:
        """Add a run, with the size of its request in bytes."""
        self.runs[run] = None
        for freed, amount in ((self._counts, 1), (self._bytes, size)):
            freed.all += amount
            freed.own += amount if run.ctx.caller.account == self._account else 0

    def reached_limit(self, ledger: CallerLedger, size: int) -> ReachedLimit | None:
        """Return the limit that leaves no room for the new run when the others have ended, or None."""
        return ledger.reached_limit(Resource.RUNS, 1, self._counts) or ledger.reached_limit(
            Resource.REQUEST_BYTES, size, self._bytes
        )
