"""Spans and metrics of runs, model calls and tool calls, through OpenTelemetry's API.

Rule: no SDK is set up here. If the process has one (``opentelemetry-instrument`` installs it), it receives spans and
metrics that follow the GenAI conventions. Without an SDK the API does nothing. No event of a run passes through this
package. The content of messages is recorded only if the operator enables it. If ``AGUI_METRICS`` is on, the same
instruments feed ``/metrics``.

Source: docs/observability.md.
"""

from agui_container.telemetry.export import make_exporter
from agui_container.telemetry.instruments import (
    BUS_DURATION,
    CANCEL_REASON,
    CANCELS,
    EVENTS,
    LIMIT_USE,
    LOOP_LAG,
    OPEN_RUNS,
    QUEUED_RUNS,
    READER_LAG,
    READERS,
    STORE_DURATION,
    CallTimer,
    Readings,
    observe_engine,
)
from agui_container.telemetry.limits import RefusalLog
from agui_container.telemetry.spans import Delegation, ModelCall, RunTrace, ToolCall

__all__ = [
    "BUS_DURATION",
    "CANCELS",
    "CANCEL_REASON",
    "EVENTS",
    "LIMIT_USE",
    "LOOP_LAG",
    "OPEN_RUNS",
    "QUEUED_RUNS",
    "READERS",
    "READER_LAG",
    "STORE_DURATION",
    "CallTimer",
    "Delegation",
    "ModelCall",
    "Readings",
    "RefusalLog",
    "RunTrace",
    "ToolCall",
    "make_exporter",
    "observe_engine",
]
