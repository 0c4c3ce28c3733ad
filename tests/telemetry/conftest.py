"""A recorder of spans and a reader of metrics for one test."""

from collections.abc import Iterator
from weakref import WeakSet

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from agui_container.telemetry import instruments
from tests.engine.doubles import Json
from tests.secret_search import search


class Recorded:
    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self._exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def __getitem__(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def tree(self, parent: int | None = None) -> list[object]:
        """Names, each with a list of what is below it behind it, where something is."""
        found: list[object] = []
        for span in self.spans:
            if (span.parent.span_id if span.parent else None) == parent and span.context is not None:
                found.append(span.name)
                if below := self.tree(span.context.span_id):
                    found.append(below)
        return found


def attributes_of(span: ReadableSpan) -> Json:
    return dict(span.attributes or {})


def is_error(span: ReadableSpan) -> bool:
    return span.status.status_code is StatusCode.ERROR


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """A provider of this test alone: OpenTelemetry takes only one for a process."""
    provider = TracerProvider()
    monkeypatch.setattr("agui_container.telemetry.spans.tracer", lambda: provider.get_tracer("tests"))
    recorded = Recorded(provider)
    yield recorded
    for span in recorded.spans:
        search(span.to_json(), "a span")
    provider.shutdown()


OTEL = (instruments.otel_counter, instruments.otel_histogram, instruments.otel_observed)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """A reader of the metrics of this test alone, without the engines of other tests."""
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    monkeypatch.setattr("agui_container.telemetry.instruments.get_meter", provider.get_meter)
    monkeypatch.setattr("agui_container.telemetry.instruments.engines", WeakSet())
    for instrument in OTEL:
        instrument.cache_clear()
    yield reader
    for instrument in OTEL:
        instrument.cache_clear()
    provider.shutdown()


def metric_rows(reader: InMemoryMetricReader, name: str) -> list[tuple[dict[str, object], int | float]]:
    """The attributes of each row of a metric, and its value or the sum of its histogram."""
    data = reader.get_metrics_data()
    found = (
        [metric for each in data.resource_metrics for scope in each.scope_metrics for metric in scope.metrics]
        if data
        else []
    )
    return [
        (dict(point.attributes or {}), point.value if isinstance(point, NumberDataPoint) else point.sum)
        for metric in found
        if metric.name == name
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint | HistogramDataPoint)
    ]
