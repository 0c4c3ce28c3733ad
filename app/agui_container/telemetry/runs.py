"""Span and metrics of a run.

Rule: the span is current in the run's task, so all spans of the agent and of its framework are its children. The span
ends when the run ends for its subscribers. ``session.id`` is set as baggage, because AWS's distribution copies it from
there to the spans of other libraries.
"""

from functools import cache

from ag_ui.core import RunErrorEvent, RunFinishedEvent
from opentelemetry import baggage, context, trace
from opentelemetry.metrics import Histogram, get_meter
from opentelemetry.trace import Span, Status, StatusCode

from agui_container import __version__
from agui_container.ports import RunContext
from agui_container.telemetry import spans
from agui_container.telemetry.semconv import (
    CONVERSATION,
    ERROR,
    MODEL,
    OPERATION,
    PROVIDER,
    PROVIDERS,
    REQUEST,
    RUN,
    SESSION,
    STATUS,
    TOKEN_TYPE,
    Attributes,
    usage_attributes,
)

INVOKE = "invoke_agent"


class RunTrace:
    """Span of one run, with its metrics."""

    __slots__ = ("_span",)

    def __init__(self) -> None:
        self._span: Span | None = None

    def begin(self, ctx: RunContext) -> None:
        """Start the span and make it current in the task that calls this."""
        attributes: Attributes = {
            OPERATION: INVOKE,
            CONVERSATION: ctx.thread_id,
            RUN: ctx.run_id,
            REQUEST: ctx.caller.request_id,
        }
        session = ctx.caller.session_id
        if session:
            attributes[SESSION] = session
        self._span = span = spans.tracer().start_span(INVOKE, attributes=attributes)
        if span.is_recording():
            current = trace.set_span_in_context(span)
            context.attach(baggage.set_baggage(SESSION, session, current) if session else current)

    def end(self, event: RunFinishedEvent | RunErrorEvent, status: str, seconds: float) -> None:
        """End the span and record the metrics.

        Args:
            event: terminal event of the run.
            status: status of the run.
            seconds: duration of the run.
        """
        span, self._span = self._span, None
        if span is None:
            return
        attributes: Attributes = {STATUS: str(status)}
        if isinstance(event, RunErrorEvent):
            attributes[ERROR] = event.code or "_OTHER"
            span.set_status(Status(StatusCode.ERROR, event.message))
        make_instruments()[0].record(seconds, attributes)
        if span.is_recording():
            span.set_attributes({**attributes, **usage_attributes(event.usage or ())})
        span.end()
        for entry in event.usage or ():
            _count(entry.input_tokens, "input", entry.provider, entry.model)
            _count(entry.output_tokens, "output", entry.provider, entry.model)

    def refuse(self, code: str) -> None:
        """End the span of a run that was not admitted."""
        span, self._span = self._span, None
        if span is not None:
            span.set_attribute(ERROR, code)
            span.end()


def _count(tokens: int | None, kind: str, provider: str | None, model: str | None) -> None:
    if tokens is not None:
        provider_name = PROVIDERS.get(provider or "", provider or "unknown")
        make_instruments()[1].record(tokens, {TOKEN_TYPE: kind, PROVIDER: provider_name, MODEL: model or "unknown"})


@cache
def make_instruments() -> tuple[Histogram, Histogram]:
    """Create the histograms of run durations and of used tokens."""
    meter = get_meter("agui-container", __version__)
    return (
        meter.create_histogram("agui.run.duration", "s", "How long runs take."),
        meter.create_histogram("agui.run.tokens", "{token}", "Tokens that the model calls of runs use."),
    )
