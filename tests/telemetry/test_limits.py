"""Metrics of limits: refusals by each limit, and its use."""

from collections.abc import Iterator
from weakref import WeakSet

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from agui_container.engine.policy import CallerLimits
from agui_container.protocol.errors import AppError
from agui_container.telemetry import limits
from tests.engine.doubles import asking, caller, forever, make_service
from tests.requirements import requirement


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """Return a reader of the metrics of this test."""
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    instruments = (limits.refusal_counter, limits.use_gauge)
    for instrument in instruments:
        instrument.cache_clear()
    monkeypatch.setattr("agui_container.telemetry.limits.get_meter", provider.get_meter)
    monkeypatch.setattr("agui_container.telemetry.limits.observed_engines", WeakSet())
    yield reader
    for instrument in instruments:
        instrument.cache_clear()
    provider.shutdown()


def metric_rows(reader: InMemoryMetricReader, name: str) -> list[tuple[dict[str, object], int | float]]:
    """The attributes and the value of each row."""
    data = reader.get_metrics_data()
    assert data is not None
    found = [metric for each in data.resource_metrics for scope in each.scope_metrics for metric in scope.metrics]
    points = [point for metric in found if metric.name == name for point in metric.data.data_points]
    return [(dict(point.attributes or {}), point.value) for point in points if isinstance(point, NumberDataPoint)]


@requirement("trace.limits")
async def test_refusals_and_use_are_measured_by_limit_and_by_no_caller(reader: InMemoryMetricReader) -> None:
    service = make_service(forever, caller_limits=CallerLimits(runs=1))
    await service.open()
    service.start(asking(), caller())
    for number in range(3):
        with pytest.raises(AppError):
            service.start(asking(f"other {number}"), caller())
    assert metric_rows(reader, "agui.limit.refusals") == [
        ({"agui.limit.name": "runs", "agui.limit.scope": "caller"}, 3),
    ]
    assert {str(row["agui.limit.name"]): used for row, used in metric_rows(reader, "agui.limit.used")} == {
        "runs": 1,
        "requestBytes": 0,
        "streams": 1,
        "sockets": 0,
        "backgroundTasks": 0,
        "logBytes": 0,
    }
    await service.drain(0)
