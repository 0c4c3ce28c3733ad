"""The instruments as Prometheus reads them: the text of ``/metrics``.

Names follow OpenTelemetry's mapping for Prometheus, so that one dashboard reads ``/metrics`` and what a collector of
OpenTelemetry passes on: dots become underscores, units become suffixes, and counters end in ``_total``.

Rule: imported only if ``AGUI_METRICS`` is on, because ``prometheus-client`` belongs to the extra ``metrics``.

Source: OpenTelemetry's specification, "Prometheus and OpenMetrics compatibility".
"""

from collections.abc import Iterable, Sequence
from functools import cache

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from agui_container.telemetry.instruments import (
    OBSERVED,
    RECORDED,
    AttributeValues,
    Counter,
    Histogram,
    Instrument,
    Observed,
    recorders,
)

UNITS = {"s": "_seconds"}
"""Suffixes of the names, by units. A unit in braces has none."""


class Exposition:
    """All measurements of this process since the exposition was made."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._recorded = {each.name: make_metric(each) for each in RECORDED}

    def record(self, instrument: Counter | Histogram, value: float, attributes: AttributeValues) -> None:
        metric = self._recorded[instrument.name]
        child = metric.labels(*label_values(instrument, attributes)) if instrument.attributes else metric
        if isinstance(child, prometheus_client.Counter):
            child.inc(value)
        else:
            child.observe(value)

    def collect(self) -> Iterable[Metric]:
        for recorded in self._recorded.values():
            for metric in recorded.collect():
                metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
                yield metric
        yield from map(read_observed, OBSERVED)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the body and the content type of ``/metrics`` for an ``Accept`` header."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


@cache
def expose() -> Exposition:
    """Return the exposition of this process. The first call makes it, and it counts from then on."""
    exposition = Exposition()
    recorders.append(exposition.record)
    return exposition


def metric_name(instrument: Instrument) -> str:
    """Return the name of an instrument for Prometheus, without the ``_total`` of a counter."""
    return instrument.name.replace(".", "_") + UNITS.get(instrument.unit, "")


def label_names(instrument: Instrument) -> Sequence[str]:
    return [name.replace(".", "_") for name in instrument.attributes]


def label_values(instrument: Instrument, attributes: AttributeValues) -> Sequence[str]:
    return [attributes.get(name, "") for name in instrument.attributes]


def make_metric(instrument: Counter | Histogram) -> prometheus_client.Counter | prometheus_client.Histogram:
    about = metric_name(instrument), instrument.description, label_names(instrument)
    if isinstance(instrument, Counter):
        return prometheus_client.Counter(*about, registry=None)
    return prometheus_client.Histogram(*about, registry=None, buckets=instrument.boundaries)


def read_observed(observed: Observed) -> Metric:
    family = CounterMetricFamily if observed.is_monotonic else GaugeMetricFamily
    metric = family(metric_name(observed), observed.description, labels=label_names(observed))
    for attributes, value in observed.values():
        metric.add_metric(label_values(observed, attributes), value)
    return metric
