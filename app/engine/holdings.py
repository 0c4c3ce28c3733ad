"""The runs of this process as the keeper of its leases sees them: all of them, whoever they belong to.

Rule: what other replicas want of a run is done here and nowhere else, and is harmless where the run is not.
"""

from collections.abc import Sequence

from app.engine.ledger import TAKEN
from app.engine.lifecycle import Lifecycle
from app.engine.subscriptions import Subscriptions
from app.engine.usage import stored, summed
from app.ports import Clock
from app.ports.records import RunKey, Standing


class Holdings:
    """Implements ``leases.Here``."""

    def __init__(self, lifecycle: Lifecycle, subscriptions: Subscriptions, clock: Clock) -> None:
        self._lifecycle = lifecycle
        self._subscriptions = subscriptions
        self._clock = clock

    def claimed(self) -> Sequence[RunKey]:
        """Those that go on and that the store knows."""
        return [run.key for run in self._lifecycle.claimed()]

    def standings(self) -> Sequence[Standing]:
        """How those stand."""
        now = self._clock.time()
        return [
            Standing(run.key, run.presence.size(now), stored(summed(run.ctx.usage)))
            for run in self._lifecycle.claimed()
        ]

    def holds(self, key: RunKey) -> bool:
        """Whether a run goes on here, or is being written down."""
        return self._lifecycle.holds(key)

    def cancel(self, key: RunKey) -> None:
        """End a run."""
        if (run := self._lifecycle.get(key)) is not None:
            run.cancel()

    def lost(self, key: RunKey) -> None:
        """A run is another replica's now."""
        if (run := self._lifecycle.get(key)) is not None:
            run.fail(TAKEN)

    def watched(self, key: RunKey, reader: str) -> None:
        """A run has a reader on another replica."""
        if (run := self._lifecycle.get(key)) is not None:
            self._subscriptions.heard(run, reader)
