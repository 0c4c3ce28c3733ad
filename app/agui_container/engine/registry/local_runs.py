"""The runs of this process, of all owners, as the leases and other replicas need them.

Rule: commands of other replicas are executed here only. A command for a run that is not in this process does nothing.
"""

from collections.abc import Sequence

from agui_container.engine.outcome import CancelReason, sum_usage, usage_json
from agui_container.engine.persistence.recorder import LEASE_TAKEN, StoreState
from agui_container.engine.registry.readers import Readers
from agui_container.engine.registry.registry import RunRegistry
from agui_container.ports import Clock
from agui_container.ports.records import RunKey, RunProgress


class LocalRuns:
    """Implements ``leases.LeasedRuns``."""

    def __init__(self, registry: RunRegistry, readers: Readers, clock: Clock) -> None:
        self._registry = registry
        self._readers = readers
        self._clock = clock

    def claimed_runs(self) -> Sequence[RunKey]:
        """Return the keys of the open runs that are claimed in the store."""
        return [run.key for run in self._registry.claimed_runs()]

    def progress(self) -> Sequence[RunProgress]:
        """Return the number of readers and the usage of the open runs that are claimed in the store."""
        now = self._clock.time()
        return [
            RunProgress(run.key, run.presence.count(now), usage_json(sum_usage(run.ctx.usage)))
            for run in self._registry.claimed_runs()
        ]

    def is_running(self, key: RunKey) -> bool:
        """Return True if a run is open in this process or its end is not stored yet."""
        return self._registry.is_running(key)

    def cancel(self, key: RunKey) -> None:
        """Cancel a run."""
        if (run := self._registry.get(key)) is not None:
            run.cancel(CancelReason.CALLER)

    def end_lost(self, key: RunKey) -> None:
        """End a run whose lease another replica has."""
        if (run := self._registry.get(key)) is not None:
            run.fail(LEASE_TAKEN)

    def end_stored(self, key: RunKey) -> None:
        """Record that the store has the end of a run, so that late readers read it there."""
        if (run := self._registry.get(key)) is not None:
            run.recorder.state = StoreState.STORED
            self._registry.release_unread(run)

    def reader_seen(self, key: RunKey, reader: str) -> None:
        """Record that a run has a reader on another replica."""
        if (run := self._registry.get(key)) is not None:
            self._readers.remote_reader_seen(run, reader)
