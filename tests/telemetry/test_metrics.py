"""Metrics: each instrument by what happens, the same numbers for OpenTelemetry and Prometheus, and the dashboard."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from ag_ui.core import RunAgentInput
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from agui_container.buses import open_bus
from agui_container.engine.engine import Engine
from agui_container.engine.loop_monitor import LoopMonitor
from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.settings import Settings
from agui_container.telemetry import instruments
from agui_container.telemetry.instruments import OPERATION, SYSTEM
from agui_container.telemetry.prometheus import Exposition, expose, label_names, metric_name
from tests.engine.doubles import WAIT, FakeClock, ask, asking, caller, envelopes, eventually, forever, make_service
from tests.requirements import requirement
from tests.sockets.process import ServerProcess
from tests.stores.doubles import RUN
from tests.stores.doubles import envelopes as stored_envelopes
from tests.telemetry.conftest import metric_rows

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "agui-container.json"
INSTRUMENTS = (*instruments.RECORDED, *instruments.OBSERVED)
DISTRIBUTION = ("_bucket", "_count", "_sum")


@pytest.fixture
def exposition(reader: InMemoryMetricReader) -> Iterator[Exposition]:
    """The exposition of this test alone, beside OpenTelemetry's reader."""
    expose.cache_clear()
    yield expose()
    instruments.sinks.clear()
    expose.cache_clear()


def families(text: str) -> dict[str, Metric]:
    """The metrics of a text of Prometheus's, by name."""
    return {family.name: family for family in text_string_to_metric_families(text)}


def served(exposition: Exposition) -> dict[str, Metric]:
    body, _ = exposition.render("")
    return families(body.decode())


async def open_service(agent: object, clock: FakeClock | None = None, **settings: str) -> Engine:
    service = make_service(agent, Settings.model_validate(settings), clock=clock)
    await service.open()
    return service


# --- instruments ------------------------------------------------------------------------------------------------------


@requirement("metrics.runs")
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
    await envelopes(service.start(asking(), caller()))
    assert metric_rows(reader, "agui.run.first_event") == [({}, measured)]
    await service.aclose()


@requirement("metrics.runs")
async def test_cancelled_runs_are_counted_by_the_reason(reader: InMemoryMetricReader) -> None:
    service = await open_service(forever, on_busy="interrupt", on_disconnect="cancel")
    service.start(asking("asked"), caller())
    await service.runs.cancel(caller(), "asked", None)
    await service.runs.cancel(caller(), "asked", None)
    service.start(asking("left"), caller()).close()
    service.start(asking("busy", "r1"), caller())
    service.start(asking("busy", "r2"), caller())
    rows = metric_rows(reader, "agui.run.cancels")
    assert rows == [({"agui.cancel.reason": reason}, 1) for reason in ("caller", "disconnect", "new_run")]
    await service.drain(0)
    await service.aclose()


@requirement("metrics.counts")
async def test_open_and_queued_runs_readers_and_events_are_counted(reader: InMemoryMetricReader) -> None:
    service = await open_service(forever, on_busy="enqueue")
    for run in ("r1", "r2", "r3"):
        service.start(asking(run=run), caller())
    counts = {name: metric_rows(reader, f"agui.{name}") for name in ("run.open", "run.queued", "reader.open")}
    assert counts == {"run.open": [({}, 3)], "run.queued": [({}, 2)], "reader.open": [({}, 3)]}
    await eventually(lambda: metric_rows(reader, "agui.run.events") == [({}, 1)])  # RUN_STARTED of the active run
    await service.drain(0)
    await service.aclose()


async def test_calls_of_the_bus_are_measured_by_their_operation(reader: InMemoryMetricReader, redis_url: str) -> None:
    bus = open_bus(redis_url)
    await bus.publish(RUN, stored_envelopes(1, 1))
    await bus.send("replica-a", b"cancel")
    await bus.aclose()
    rows = [attributes for attributes, _ in metric_rows(reader, "agui.bus.duration")]
    assert rows == [{SYSTEM: "redis", OPERATION: operation} for operation in ("publish", "send")]


@requirement("metrics.counts")
async def test_the_lag_is_that_of_the_reader_who_is_furthest_behind(reader: InMemoryMetricReader) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for _number in range(8):
            yield "a"

    service = await open_service(agent)
    quick, slow = service.start(asking(), caller()), service.start(asking(), caller())
    events = await envelopes(quick)
    assert metric_rows(reader, "agui.reader.lag") == [({}, len(events))]
    await anext(slow)
    assert metric_rows(reader, "agui.reader.lag") == [({}, 0)]
    await service.aclose()


@requirement("metrics.counts")
async def test_the_lag_of_the_event_loop_is_measured_while_runs_are_open(
    reader: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agui_container.engine.loop_monitor.INTERVAL_SECONDS", 0.0)
    service = make_service(forever)
    monitor = asyncio.create_task(LoopMonitor(service.health, service.registry).run())
    for _ in range(3):
        await asyncio.sleep(0)
    assert metric_rows(reader, "agui.loop.lag") == []
    service.start(asking(), caller())
    await eventually(lambda: metric_rows(reader, "agui.loop.lag"))
    monitor.cancel()
    await service.drain(0)


# --- /metrics ---------------------------------------------------------------------------------------------------------


@requirement("metrics.served")
async def test_prometheus_and_opentelemetry_have_the_same_numbers(
    exposition: Exposition, reader: InMemoryMetricReader
) -> None:
    service = await open_service(forever)
    service.start(asking(), caller())
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


@requirement("metrics.served")
@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda each: each.name)
def test_names_are_those_that_a_collector_writes_for_prometheus(
    exposition: Exposition, instrument: instruments.Instrument
) -> None:
    family = served(exposition)[metric_name(instrument)]
    assert family.name == instrument.name.replace(".", "_") + ("_seconds" if instrument.unit == "s" else "")
    assert family.documentation == instrument.description
    assert not [sample.name for sample in family.samples if sample.name.endswith("_created")]


@requirement("metrics.off")
async def test_there_is_no_metrics_route_unless_it_is_on() -> None:
    paths = {
        enabled: {getattr(route, "path", "") for route in build_app(Settings(metrics=enabled)).routes}
        for enabled in (False, True)
    }
    assert paths[True] - paths[False] == {"/metrics"}
    instruments.sinks.clear()
    expose.cache_clear()


# --- a server, and the dashboard --------------------------------------------------------------------------------------


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


@requirement("metrics.served")
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
    assert operations == {("sqlite", "read"), ("sqlite", "write")}
    [events] = metrics["agui_run_events"].samples
    assert events.value > 14  # the first run alone has so many


@requirement("metrics.quiet")
def test_polls_write_no_line_to_the_log_at_any_level(server: ServerProcess) -> None:
    httpx.get(f"http://127.0.0.1:{server.port}/ping", timeout=WAIT)
    httpx.get(f"http://127.0.0.1:{server.port}/metrics", timeout=WAIT)
    httpx.post(server.invocations, json=ask("after", "after"), timeout=WAIT)
    server.wait_for(lambda line: "run finished run=after" in line)
    assert not [line for line in server.log if re.search(r"GET|/ping|/metrics(?!/)", line)]


def expressions() -> list[str]:
    """All expressions of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def samples_of(instrument: instruments.Instrument) -> set[str]:
    """The names that expressions use for an instrument."""
    name = metric_name(instrument)
    if isinstance(instrument, instruments.Histogram):
        return {f"{name}{suffix}" for suffix in DISTRIBUTION}
    is_counter = isinstance(instrument, instruments.Counter) or getattr(instrument, "is_monotonic", False)
    return {f"{name}_total" if is_counter else name}


LABEL = re.compile(r"by \(([^)]*)\)|\b(\w+)\s*(?:=~|!=|=)\s*\"")


@requirement("metrics.dashboard")
def test_the_dashboard_shows_every_instrument_and_nothing_that_is_not_served(metrics: dict[str, Metric]) -> None:
    assert {metric_name(each) for each in INSTRUMENTS} == {name for name in metrics if name.startswith("agui_")}
    shown = set(re.findall(r"\bagui_\w+(?=\{)", " ".join(expressions())))
    assert shown <= set().union(*map(samples_of, INSTRUMENTS))
    assert [each.name for each in INSTRUMENTS if not shown & samples_of(each)] == []


@requirement("metrics.dashboard")
@pytest.mark.parametrize("expression", expressions())
def test_the_dashboard_uses_only_labels_that_the_instrument_has(expression: str) -> None:
    [instrument] = [each for each in INSTRUMENTS if samples_of(each) & set(re.findall(r"\bagui_\w+(?=\{)", expression))]
    found = {name.strip() for pair in LABEL.findall(expression) for name in f"{pair[0]},{pair[1]}".split(",")}
    assert found - {"", "job", "instance", "le"} <= set(label_names(instrument))
