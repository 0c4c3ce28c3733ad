"""Metrics: each instrument by what happens, the same numbers for OpenTelemetry and Prometheus, and the dashboard."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextvars import copy_context

import httpx
import pytest
from ag_ui.core import RunAgentInput, RunFinishedEvent, TokenUsage
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from agui_container.engine.engine import Engine
from agui_container.engine.health import LoopMonitor
from agui_container.engine.limits import IdentityLimits
from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.protocol.errors import AppError
from agui_container.settings import Settings
from agui_container.telemetry import instruments
from agui_container.telemetry.prometheus import Exposition, expose, metric_name
from agui_container.telemetry.spans import RunTrace
from tests.contexts import run_context
from tests.engine.doubles import WAIT, FakeClock, ask, asking, caller, envelopes, eventually, forever, make_service
from tests.server.sockets.process import ServerProcess
from tests.telemetry.conftest import metric_rows

INSTRUMENTS = (*instruments.RECORDED, *instruments.OBSERVED)


@pytest.fixture
def exposition(reader: InMemoryMetricReader) -> Iterator[Exposition]:
    """The exposition of this test alone, beside OpenTelemetry's reader."""
    expose.cache_clear()
    yield expose()
    instruments.recorders.clear()
    expose.cache_clear()


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def served(exposition: Exposition) -> dict[str, Metric]:
    body, _ = exposition.render("")
    return families(body.decode())


async def open_service(agent: object, clock: FakeClock | None = None, **settings: str) -> Engine:
    service = make_service(agent, Settings.model_validate(settings), clock=clock)
    await service.open()
    return service


@pytest.mark.parametrize(("passed", "measured"), [(2.0, 2.0), (-3_600.0, 0.0)], ids=["a while", "set back"])
async def test_the_first_event_of_the_agent_is_measured_from_the_request(
    reader: InMemoryMetricReader, passed: float, measured: float
) -> None:
    clock = FakeClock()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        clock.now += passed
        yield "a"
        clock.advance(5.0)
        yield "b"

    service = await open_service(agent, clock)
    await envelopes(await service.admit(asking(), caller()))
    assert metric_rows(reader, "agui.run.first_event") == [({}, measured)]
    await service.aclose()


async def test_cancelled_runs_are_counted_by_the_reason(reader: InMemoryMetricReader) -> None:
    service = await open_service(forever, on_busy="interrupt", on_disconnect="cancel")
    await service.admit(asking("asked"), caller())
    await service.runs.cancel(caller(), "asked", None)
    await service.runs.cancel(caller(), "asked", None)
    (await service.admit(asking("left"), caller())).close()
    await service.admit(asking("busy", "r1"), caller())
    await service.admit(asking("busy", "r2"), caller())
    rows = metric_rows(reader, "agui.run.cancels")
    assert rows == [({"agui.cancel.reason": reason}, 1) for reason in ("caller", "disconnect", "new_run")]
    await service.drain(0)
    await service.aclose()


async def test_the_lag_of_the_event_loop_is_measured_while_runs_are_open(
    reader: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agui_container.engine.health.INTERVAL_SECONDS", 0.0)
    service = make_service(forever)
    monitor = asyncio.create_task(LoopMonitor(service.health, service.registry.open_run_ids).run())
    for _ in range(3):
        await asyncio.sleep(0)
    assert metric_rows(reader, "agui.loop.lag") == []
    await service.admit(asking(), caller())
    await eventually(lambda: metric_rows(reader, "agui.loop.lag"))
    monitor.cancel()
    await service.drain(0)


def test_tokens_are_measured_by_model(reader: InMemoryMetricReader) -> None:
    usage = [
        TokenUsage(provider="bedrock", model="claude", input_tokens=10, output_tokens=2),
        TokenUsage(model="own", input_tokens=5),
    ]
    trace = RunTrace()
    copy_context().run(trace.begin, run_context())
    trace.end(RunFinishedEvent(thread_id="thread", run_id="run", usage=usage), "finished", 1.5)
    claude = {"gen_ai.provider.name": "aws.bedrock", "gen_ai.request.model": "claude"}
    own = {"gen_ai.provider.name": "unknown", "gen_ai.request.model": "own"}
    assert metric_rows(reader, "agui.run.tokens") == [
        ({"gen_ai.token.type": "input", **claude}, 10),
        ({"gen_ai.token.type": "output", **claude}, 2),
        ({"gen_ai.token.type": "input", **own}, 5),
    ]


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


async def test_prometheus_and_opentelemetry_have_the_same_numbers(
    exposition: Exposition, reader: InMemoryMetricReader
) -> None:
    service = await open_service(forever)
    await service.admit(asking(), caller())
    await service.runs.cancel(caller(), "t1", None)
    await service.drain(0)
    text = served(exposition)
    compared = 0
    for instrument in INSTRUMENTS:
        is_histogram = isinstance(instrument, instruments.Histogram)
        samples = {
            tuple(sample.labels.values()): sample.value
            for sample in text[metric_name(instrument)].samples
            if not is_histogram or sample.name.endswith("_sum")
        }
        rows = metric_rows(reader, instrument.name)
        expected = {tuple(str(row.get(name, "")) for name in instrument.attributes): value for row, value in rows}
        assert expected.items() <= samples.items()
        compared += len(expected)
    assert compared > len(instruments.OBSERVED)
    await service.aclose()


async def test_there_is_no_metrics_route_unless_it_is_on() -> None:
    paths = {
        enabled: {getattr(route, "path", "") for route in build_app(Settings(metrics=enabled)).routes}
        for enabled in (False, True)
    }
    assert paths[True] - paths[False] == {"/metrics"}
    instruments.recorders.clear()
    expose.cache_clear()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on SQLite that has answered two runs, one of which has failed."""
    database = tmp_path_factory.mktemp("metrics") / "agui.db"
    settings = {"AGUI_AGENT": "assistant", "AGUI_METRICS": "on", "AGUI_STORE": f"sqlite:///{database}"}
    with ServerProcess(**settings, AGUI_LOG_LEVEL="debug") as server:
        for text in ("stream 10", "fail"):
            httpx.post(server.invocations, json=ask(text, text, text=text), timeout=WAIT).raise_for_status()
        yield server


@pytest.fixture(scope="module")
def metrics(server: ServerProcess) -> dict[str, Metric]:
    answer = httpx.get(f"http://127.0.0.1:{server.port}/metrics", timeout=WAIT)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return families(answer.text)


def test_a_server_shows_its_runs_by_outcome_and_the_latency_of_its_store(metrics: dict[str, Metric]) -> None:
    counts = {
        (sample.labels["agui_run_status"], sample.labels["error_type"]): sample.value
        for sample in metrics["agui_run_duration_seconds"].samples
        if sample.name.endswith("_count")
    }
    assert counts == {("finished", ""): 1, ("error", "MODEL_ERROR"): 1}
    operations = {
        (sample.labels["agui_backend_system"], sample.labels["agui_backend_operation"])
        for sample in metrics["agui_store_duration_seconds"].samples
    }
    assert operations == {("sqlite", "write")}, "a run reads its thread in the transaction that begins it"
    [events] = metrics["agui_run_events"].samples
    assert events.value > 14  # the first run alone has so many
