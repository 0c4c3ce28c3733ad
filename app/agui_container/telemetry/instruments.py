"""The instruments of this server. Each one is defined here once, and feeds OpenTelemetry and ``/metrics``.

Rules:

- Names, units and attributes are OpenTelemetry's. ``/metrics`` has them as Prometheus writes them (``prometheus.py``).
- No attribute names an identity, a thread or a run, because each value of an attribute is a time series of its own.
- Nothing is measured for each event of a run: a run is measured at its end, and counts are read when somebody asks.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import TracebackType
from typing import Protocol, Self
from weakref import WeakSet

from msgspec import Struct
from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation, get_meter

from agui_container import __version__
from agui_container.log_values import format_fields
from agui_container.telemetry.semconv import ERROR, MODEL, PROVIDER, STATUS, TOKEN_TYPE

LIMIT, LIMIT_SCOPE = "agui.limit.name", "agui.limit.scope"
CANCEL_REASON = "agui.cancel.reason"
SYSTEM, OPERATION = "agui.backend.system", "agui.backend.operation"

AttributeValues = Mapping[str, str]
"""The values of an instrument's attributes, by their names. A missing one has no value."""

RUN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
FIRST_EVENT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
TOKENS = (16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576)


REPORT_SECONDS = 60.0
"""Seconds between two log lines about the same limit of the same identity."""

logger = logging.getLogger(__name__)


class Instrument(Struct, frozen=True):
    """Definition of an instrument. ``unit`` is a unit of UCUM: seconds are ``s``, a noun in braces is a count."""

    name: str
    unit: str
    description: str
    attributes: tuple[str, ...] = ()


class Counter(Instrument, frozen=True):
    def add(self, amount: float, attributes: AttributeValues) -> None:
        otel_counter(self).add(amount, attributes)
        for record in recorders:
            record(self, amount, attributes)


class Histogram(Instrument, frozen=True):
    """A distribution of values. ``boundaries`` are the upper bounds of its buckets."""

    boundaries: tuple[float, ...] = ()

    def record(self, value: float, attributes: AttributeValues) -> None:
        otel_histogram(self).record(value, attributes)
        for record in recorders:
            record(self, value, attributes)


recorders: list[Callable[[Counter | Histogram, float, AttributeValues], None]] = []
"""Functions that take measurements besides OpenTelemetry: that of ``/metrics`` if it is on."""


Readings = Mapping[str, Mapping[str, float]]
"""Counts of one engine at this moment: by the name of the instrument, and by the value of its attribute, if any."""


class Observed(Instrument, frozen=True, kw_only=True):
    """A count that is read from the engines of this process when it is asked for. ``combine`` is for several."""

    combine: Callable[[Iterable[float]], float] = sum
    is_monotonic: bool = False

    def values(self) -> Iterable[tuple[AttributeValues, float]]:
        """Return the values with their attributes. Any thread may ask."""
        counts = [engine.readings()[self.name] for engine in list(engines)]
        for name in dict.fromkeys(name for each in counts for name in each):
            yield dict.fromkeys(self.attributes, name), self.combine(each[name] for each in counts)


RUN_DURATION = Histogram("agui.run.duration", "s", "Duration of runs by outcome.", (STATUS, ERROR), RUN_SECONDS)
FIRST_EVENT = Histogram(
    "agui.run.first_event", "s", "Time from the request to the first event of the agent.", (), FIRST_EVENT_SECONDS
)
RUN_TOKENS = Histogram(
    "agui.run.tokens", "{token}", "Tokens that the model calls of runs use.", (TOKEN_TYPE, PROVIDER, MODEL), TOKENS
)
CANCELS = Counter("agui.run.cancels", "{run}", "Cancelled runs by reason.", (CANCEL_REASON,))
REFUSALS = Counter("agui.limit.refusals", "{refusal}", "Refusals because a limit was reached.", (LIMIT, LIMIT_SCOPE))
STORE_DURATION = Histogram(
    "agui.store.duration", "s", "Duration of calls of the store.", (SYSTEM, OPERATION, ERROR), CALL_SECONDS
)
BUS_DURATION = Histogram(
    "agui.bus.duration", "s", "Duration of calls of the bus.", (SYSTEM, OPERATION, ERROR), CALL_SECONDS
)
LOOP_LAG = Histogram("agui.loop.lag", "s", "Delay of timers of the event loop while runs are open.", (), LAG_SECONDS)
EVENTS = Observed("agui.run.events", "{event}", "Events of runs.", is_monotonic=True)
OPEN_RUNS = Observed("agui.run.open", "{run}", "Runs that have not ended.")
QUEUED_RUNS = Observed("agui.run.queued", "{run}", "Runs that wait for another run on their thread.")
READERS = Observed("agui.reader.open", "{reader}", "Readers of runs.")
READER_LAG = Observed(
    "agui.reader.lag", "{event}", "Events that are ready and not handed out to the slowest reader.", combine=max
)
LIMIT_USE = Observed("agui.limit.used", "{unit}", "Use of the limits of this process.", (LIMIT,))

RECORDED: tuple[Counter | Histogram, ...] = (
    *(RUN_DURATION, FIRST_EVENT, RUN_TOKENS, CANCELS, REFUSALS, STORE_DURATION, BUS_DURATION, LOOP_LAG),
)
OBSERVED = (EVENTS, OPEN_RUNS, QUEUED_RUNS, READERS, READER_LAG, LIMIT_USE)


class CallTimer:
    """Context manager that measures one call of the store or of the bus."""

    __slots__ = ("_attributes", "_histogram", "_started_at")

    def __init__(self, histogram: Histogram, system: str, operation: str) -> None:
        self._histogram = histogram
        self._attributes = {SYSTEM: system, OPERATION: operation}
        self._started_at = 0.0

    def __enter__(self) -> Self:
        self._started_at = time.perf_counter()
        return self

    def __exit__(self, error_type: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if error_type is not None:
            self._attributes[ERROR] = error_type.__name__
        self._histogram.record(time.perf_counter() - self._started_at, self._attributes)


class RefusalLog:
    """Refusals by limits: all in the metric, and in the log one in ``REPORT_SECONDS`` for each limit of an identity."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._reported_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def report(self, name: str, identity: str = "", scope: str = "process") -> None:
        """Count a refusal, and log it unless the same limit was logged a short while ago.

        ``identity`` is the one that was refused, empty without one. ``scope`` is ``identity`` or ``process``.
        """
        REFUSALS.add(1, {LIMIT: name, LIMIT_SCOPE: scope})
        now = self._now()
        while self._reported_at and now - next(iter(self._reported_at.values())) >= REPORT_SECONDS:
            self._reported_at.popitem(last=False)
        if (name, identity) not in self._reported_at:
            self._reported_at[name, identity] = now
            fields = {"limit": name, "identity": identity} if identity else {"limit": name}
            logger.warning("limit reached %s", format_fields(fields))


class CountedEngine(Protocol):
    def readings(self) -> Readings:
        """Return the counts at this moment. Any thread may ask."""


engines: WeakSet[CountedEngine] = WeakSet()
"""The engines of this process, usually one. Telemetry must not keep an engine that has ended."""


def observe_engine(engine: CountedEngine) -> None:
    """Read the counts of an engine from now on, as long as the engine exists."""
    for instrument in OBSERVED:
        otel_observed(instrument)
    engines.add(engine)


# --- OpenTelemetry ----------------------------------------------------------------------------------------------------


@cache
def otel_counter(counter: Counter) -> metrics.Counter:
    """Return OpenTelemetry's counter. It uses the process's SDK even if that is set up later."""
    return get_meter("agui-container", __version__).create_counter(counter.name, counter.unit, counter.description)


@cache
def otel_histogram(histogram: Histogram) -> metrics.Histogram:
    """Return OpenTelemetry's histogram, as ``otel_counter``."""
    meter = get_meter("agui-container", __version__)
    return meter.create_histogram(
        histogram.name,
        histogram.unit,
        histogram.description,
        explicit_bucket_boundaries_advisory=histogram.boundaries,
    )


@cache
def otel_observed(observed: Observed) -> object:
    """Make OpenTelemetry's gauge or counter of a count."""

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, attributes) for attributes, value in observed.values()]

    meter = get_meter("agui-container", __version__)
    create = meter.create_observable_counter if observed.is_monotonic else meter.create_observable_gauge
    return create(observed.name, [observe], observed.unit, observed.description)
