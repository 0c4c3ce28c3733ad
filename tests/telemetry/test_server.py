"""A server under ``opentelemetry-instrument``, as it is deployed, and the spans that a collector gets."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.behaviour.client import outcome
from tests.engine.doubles import ask
from tests.server.sockets.client import is_last
from tests.server.sockets.process import ServerProcess
from tests.sse import events_of
from tests.telemetry.collector import SECONDS, Collector, below, text_attributes
from tests.websocket import blocking_receive_until, blocking_socket_to

pytestmark = pytest.mark.packages

COMMAND = (
    str(Path(sys.executable).parent / "opentelemetry-instrument"),
    sys.executable,
    "-m",
    "agui_container",
    "serve",
)
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SESSION = "s" * 40
HEADERS = {
    "traceparent": f"00-{TRACE}-{CALLER}-01",
    "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": SESSION,
}
RUN = ["invoke_agent", ["chat offline", "execute_tool calculate", "chat offline"]]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@contextmanager
def instrumented(collector: Collector) -> Iterator[ServerProcess]:
    """A server whose batches go every ten minutes: what comes at once was sent because nothing else was to do."""
    settings = {
        "AGUI_AGENT": "assistant",
        "AGUI_LOG_FORMAT": "json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": "600000",
        "OTEL_METRIC_EXPORT_INTERVAL": "600000",
    }
    with ServerProcess(COMMAND, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def server(collector: Collector) -> Iterator[ServerProcess]:
    with instrumented(collector) as server:
        yield server


def test_a_run_over_sse_is_one_trace_from_its_caller_down(server: ServerProcess, collector: Collector) -> None:
    url = f"http://127.0.0.1:{server.port}"
    httpx.get(f"{url}/ping", timeout=SECONDS)
    asked = ask(thread="sse", text="calculate 1+2")
    events = events_of(httpx.post(f"{url}/invocations", json=asked, headers=HEADERS, timeout=SECONDS).content)
    assert outcome(events) == "success"
    spans = collector.wait_for(lambda: [span for span in collector.spans if span.trace_id.hex() == TRACE])
    assert below(spans, bytes.fromhex(CALLER)) == ["POST /invocations", RUN]
    assert {text_attributes(span)["session.id"] for span in spans if not span.name.startswith("POST")} == {SESSION}
    assert not [span.name for span in collector.spans if "ping" in span.name]
    assert "agui.run.duration" in collector.wait_for(lambda: collector.metrics)


def test_a_line_in_the_log_carries_the_ids_of_its_trace(server: ServerProcess) -> None:
    url, headers = f"http://127.0.0.1:{server.port}/invocations", {"traceparent": f"00-{'b' * 32}-{CALLER}-01"}
    httpx.post(url, json=ask(thread="log", text="fail"), headers=headers, timeout=SECONDS)
    line = json.loads(server.wait_for(lambda line: "run failed" in line))
    assert (line["traceId"], len(line["spanId"])) == ("b" * 32, 16)


def test_a_run_over_a_socket_is_below_its_socket_and_a_stop_sends_what_is_left(collector: Collector) -> None:
    trace = "a" * 32
    with instrumented(collector) as server:
        headers = {"traceparent": f"00-{trace}-{CALLER}-01"}
        with blocking_socket_to(server.ws, headers) as socket:
            socket.send(json.dumps(ask(thread="socket", text="calculate 1+2")))
            blocking_receive_until(socket, is_last)
    spans = [span for span in collector.spans if span.trace_id.hex() == trace]
    assert below(spans, bytes.fromhex(CALLER)) == ["WS /ws", RUN]
