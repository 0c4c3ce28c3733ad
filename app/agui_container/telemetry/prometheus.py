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
    sinks,
)

UNITS = {"s": "_seconds"}
"""Suffixes of the names, by units. A unit in braces has none."""


class Exposition:
    """All measurements of this process since the exposition was made. A sink of the instruments."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._counters = {each.name: make_counter(each) for each in RECORDED if isinstance(each, Counter)}
        self._histograms = {each.name: make_histogram(each) for each in RECORDED if isinstance(each, Histogram)}

    def add(self, counter: Counter, amount: float, attributes: AttributeValues) -> None:
        child = self._counters[counter.name]
        (child.labels(*label_values(counter, attributes)) if counter.attributes else child).inc(amount)

    def record(self, histogram: Histogram, value: float, attributes: AttributeValues) -> None:
        child = self._histograms[histogram.name]
        (child.labels(*label_values(histogram, attributes)) if histogram.attributes else child).observe(value)

    def collect(self) -> Iterable[Metric]:
        for recorded in (*self._counters.values(), *self._histograms.values()):
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
    sinks.append(exposition)
    return exposition


def metric_name(instrument: Instrument) -> str:
    """Return the name of an instrument for Prometheus, without the ``_total`` of a counter."""
    return instrument.name.replace(".", "_") + UNITS.get(instrument.unit, "")


def label_names(instrument: Instrument) -> Sequence[str]:
    return [name.replace(".", "_") for name in instrument.attributes]


def label_values(instrument: Instrument, attributes: AttributeValues) -> Sequence[str]:
    """Return the values of the labels, in the order of ``label_names``."""
    return [attributes.get(name, "") for name in instrument.attributes]


def make_counter(counter: Counter) -> prometheus_client.Counter:
    return prometheus_client.Counter(metric_name(counter), counter.description, label_names(counter), registry=None)


def make_histogram(histogram: Histogram) -> prometheus_client.Histogram:
    return prometheus_client.Histogram(
        metric_name(histogram),
        histogram.description,
        label_names(histogram),
        registry=None,
        buckets=histogram.boundaries,
    )


def read_observed(observed: Observed) -> Metric:
    family = CounterMetricFamily if observed.is_monotonic else GaugeMetricFamily
    metric = family(metric_name(observed), observed.description, labels=label_names(observed))
    for attributes, value in observed.values():
        metric.add_metric(label_values(observed, attributes), value)
    return metric
