"""Metrics and log lines of the limits of the process and of identities.

Rule: no attribute of a metric names an identity, because each value of an attribute is a time series of its own.
"""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Protocol
from weakref import WeakSet

from opentelemetry.metrics import CallbackOptions, ObservableGauge, Observation, get_meter
from opentelemetry.metrics import Counter as MetricCounter

from agui_container import __version__
from agui_container.runtime.log_values import format_fields

REPORT_SECONDS = 60.0
"""Seconds between two log lines about the same limit of the same identity."""

logger = logging.getLogger(__name__)

LIMIT, SCOPE = "agui.limit.name", "agui.limit.scope"


def count_refusal(name: str, scope: str) -> None:
    """Count a request, run or message that a limit has refused or ended. ``scope`` is ``identity`` or ``process``."""
    refusal_counter().add(1, {LIMIT: name, SCOPE: scope})


@cache
def refusal_counter() -> MetricCounter:
    """Return the counter of refusals."""
    meter = get_meter("agui-container", __version__)
    return meter.create_counter("agui.limit.refusals", "{refusal}", "Refusals because a limit was reached.")


class RefusalLog:
    """Log lines about limits that were reached, once in ``REPORT_SECONDS`` for each limit of an identity.

    Args:
        now: returns seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._reported_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def report(self, name: str, identity: str = "") -> None:
        """Log that a limit was reached, unless that was logged a short while ago. ``identity`` is empty without one."""
        now = self._now()
        while self._reported_at and now - next(iter(self._reported_at.values())) >= REPORT_SECONDS:
            self._reported_at.popitem(last=False)
        if (name, identity) not in self._reported_at:
            self._reported_at[name, identity] = now
            fields = {"limit": name, "identity": identity} if identity else {"limit": name}
            logger.warning("limit reached %s", format_fields(fields))


class LimitUse(Protocol):
    """Counts the use of the limits of one engine."""

    def use(self) -> Mapping[str, int]:
        """Return the amounts by the names of the limits."""


observed_engines: WeakSet[LimitUse] = WeakSet()
"""The engines of this process, usually one. Telemetry must not keep an engine that has ended."""


def observe_use(engine: LimitUse) -> None:
    """Report the use of the limits of an engine, as long as the engine exists."""
    use_gauge()
    observed_engines.add(engine)


@cache
def use_gauge() -> ObservableGauge:
    """Return the gauge of the use of all engines."""
    meter = get_meter("agui-container", __version__)
    return meter.create_observable_gauge("agui.limit.used", [_observe], "{unit}", "Use of the limits of this process.")


def _observe(_: CallbackOptions) -> Iterable[Observation]:
    total = Counter[str]()
    for engine in observed_engines:
        total.update(engine.use())
    return [Observation(amount, {LIMIT: name}) for name, amount in total.items()]
