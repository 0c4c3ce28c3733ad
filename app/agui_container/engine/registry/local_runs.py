"""The runs of this process as the keeper of its leases sees them: all of them, whoever they belong to.

Rule: what other replicas want of a run is done here and nowhere else, and is harmless where the run is not.
"""

from collections.abc import Sequence

from agui_container.engine.outcome import sum_usage, usage_json
from agui_container.engine.persistence.recorder import LEASE_TAKEN
from agui_container.engine.registry.registry import RunRegistry
from agui_container.engine.registry.subscriptions import Subscriptions
from agui_container.ports import Clock
from agui_container.ports.records import RunKey, RunProgress


class LocalRuns:
    """Implements ``leases.Here``."""

    def __init__(self, registry: RunRegistry, subscriptions: Subscriptions, clock: Clock) -> None:
        self._registry = registry
        self._subscriptions = subscriptions
        self._clock = clock

    def claimed_runs(self) -> Sequence[RunKey]:
        """Those that go on and that the store knows."""
        return [run.key for run in self._registry.claimed_runs()]

    def progress(self) -> Sequence[RunProgress]:
        """How those stand."""
        now = self._clock.time()
        return [
            RunProgress(run.key, run.presence.count(now), usage_json(sum_usage(run.ctx.usage)))
            for run in self._registry.claimed_runs()
        ]

    def is_running(self, key: RunKey) -> bool:
        """Whether a run goes on here, or is being written down."""
        return self._registry.is_running(key)

    def cancel(self, key: RunKey) -> None:
        """End a run."""
        if (run := self._registry.get(key)) is not None:
            run.cancel()

    def end_lost(self, key: RunKey) -> None:
        """A run is another replica's now."""
        if (run := self._registry.get(key)) is not None:
            run.fail(LEASE_TAKEN)

    def reader_seen(self, key: RunKey, reader: str) -> None:
        """A run has a reader on another replica."""
        if (run := self._registry.get(key)) is not None:
            self._subscriptions.remote_reader_seen(run, reader)
