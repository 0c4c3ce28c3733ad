"""Counts of one engine, which metrics read when somebody asks for them.

Rule: any thread may ask, because an exporter of OpenTelemetry has a thread of its own. So nothing here iterates over
what the event loop may change meanwhile.
"""

from agui_container.engine.admission.quota import Limit, Quota
from agui_container.engine.registry.readers import Readers
from agui_container.engine.registry.registry import RunRegistry
from agui_container.telemetry import Readings


class EngineCounts:
    """The counts of one engine.

    Args:
        registry: the runs and their events.
        readers: the readers of runs.
        quota: the use of limits.
    """

    def __init__(self, registry: RunRegistry, readers: Readers, quota: Quota) -> None:
        self._registry = registry
        self._readers = readers
        self._quota = quota

    def readings(self) -> Readings:
        """Return the counts at this moment."""
        return Readings(
            open_runs=self._registry.open_count,
            queued_runs=self._registry.queued_count,
            readers=self._quota.amounts[Limit.STREAMS].used,
            reader_lag=self._readers.longest_lag,
            events=self._registry.flusher.event_count,
            limits=self._quota.use(),
        )
