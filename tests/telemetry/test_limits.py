"""Metrics of limits: refusals by each limit, and its use."""

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agui_container.protocol.errors import AppError
from agui_container.run.policy import IdentityLimits
from tests.engine.doubles import asking, caller, forever, make_service
from tests.telemetry.conftest import metric_rows


async def test_refusals_and_use_are_measured_by_limit_and_by_no_identity(reader: InMemoryMetricReader) -> None:
    service = make_service(forever, caller_limits=IdentityLimits(runs=1))
    await service.open()
    await service.admit(asking(), caller())
    for number in range(3):
        with pytest.raises(AppError):
            await service.admit(asking(f"other {number}"), caller())
    assert metric_rows(reader, "agui.limit.refusals") == [
        ({"agui.limit.name": "runs", "agui.limit.scope": "identity"}, 3),
    ]
    used = {str(row["agui.limit.name"]): count for row, count in metric_rows(reader, "agui.limit.used")}
    assert used["runs"] == 1
    assert used["logBytes"] > 0
    await service.drain(0)
