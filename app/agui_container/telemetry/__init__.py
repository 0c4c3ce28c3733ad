"""Spans and metrics of runs, model calls and tool calls, through OpenTelemetry's API.

Rule: no SDK is set up here. If the process has one (``opentelemetry-instrument`` installs it), it receives spans and
metrics that follow the GenAI conventions. Without an SDK the API does nothing. No event of a run passes through this
package. The content of messages is recorded only if the operator enables it. If ``AGUI_METRICS`` is on, the same
instruments feed ``/metrics``.

Source: docs/observability.md.
"""
