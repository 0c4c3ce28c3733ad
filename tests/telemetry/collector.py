"""Collector for the telemetry of a server under test: OTLP over HTTP, on loopback, kept in memory."""

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, TypeVar

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.secret_search import search

SECONDS = 120.0
T = TypeVar("T")
KINDS: dict[str, type[Message]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Collector:
    """A context manager; ``endpoint`` is for OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self) -> None:
        self._received: list[Message] = []
        self._changed = changed = threading.Condition()
        received = self._received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = KINDS[self.path]()
                request.ParseFromString(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                with changed:
                    received.append(request)
                    changed.notify_all()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(SECONDS)
        for request in self._received:
            search(str(request), "exported telemetry")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def received(self) -> list[Message]:
        return list(self._received)

    @property
    def spans(self) -> list[Span]:
        traces = [request for request in self._received if isinstance(request, ExportTraceServiceRequest)]
        found = [
            span
            for each in traces
            for part in each.resource_spans
            for scope in part.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    @property
    def metrics(self) -> set[str]:
        requests = [request for request in self._received if isinstance(request, ExportMetricsServiceRequest)]
        parts = [part for request in requests for part in request.resource_metrics]
        return {metric.name for part in parts for scope in part.scope_metrics for metric in scope.metrics}

    def wait_for(self, found: Callable[[], T]) -> T:
        deadline = time.monotonic() + SECONDS
        with self._changed:
            while not (result := found()):
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TimeoutError([span.name for span in self.spans])
        return result


def text_attributes(span: Span) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes if each.value.HasField("string_value")}


def below(spans: list[Span], parent: bytes) -> list[object]:
    """The names of what is below a span, each with a list of what is below it behind it, where something is."""
    found: list[object] = []
    for span in spans:
        if span.parent_span_id == parent:
            found.append(span.name)
            if inner := below(spans, span.span_id):
                found.append(inner)
    return found
