"""Metrics of the limits of the process and of callers.

Rule: no attribute names a caller, because each value of an attribute is a time series of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from opentelemetry.metrics import CallbackOptions, Counter, Observation, get_meter

from agui_container import __version__

LIMIT, SCOPE = "agui.limit.name", "agui.limit.scope"


def count_refusal(name: str, scope: str) -> None:
    """Count a request, run or message that a limit has refused or ended. ``scope`` is ``caller`` or ``process``."""
    _refusals().add(1, {LIMIT: name, SCOPE: scope})


@cache
def _refusals() -> Counter:
    meter = get_meter("agui-container", __version__)
    return meter.create_counter("agui.limit.refusals", "{refusal}", "Refusals because a limit was reached.")


def observe_use(read: Callable[[], Mapping[str, int]]) -> None:
    """Report the use of the process's limits. ``read`` returns the amounts by the names of the limits."""

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(amount, {LIMIT: name}) for name, amount in read().items()]

    meter = get_meter("agui-container", __version__)
    meter.create_observable_gauge("agui.limit.used", [observe], "{unit}", "Use of the limits of this process.")
