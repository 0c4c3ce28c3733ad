"""The span of a run, and what is measured of it.

Rule: it is current in the run's own task, so whatever an agent does there, also in a framework that traces itself, is
below it; it ends when the run ends for its readers. ``session.id`` goes with it as baggage, which is how AWS's
distribution marks the spans of everybody else.
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
    """One run's."""

    __slots__ = ("_span",)

    def __init__(self) -> None:
        self._span: Span | None = None

    def begin(self, ctx: RunContext) -> None:
        """The run begins in the task that calls this, and all that this task does belongs to it."""
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
            here = trace.set_span_in_context(span)
            context.attach(baggage.set_baggage(SESSION, session, here) if session else here)

    def end(self, event: RunFinishedEvent | RunErrorEvent, status: str, seconds: float) -> None:
        """The run is over for its readers. ``status`` is the run's, ``seconds`` how long it took."""
        span, self._span = self._span, None
        if span is None:
            return
        told: Attributes = {STATUS: str(status)}
        if isinstance(event, RunErrorEvent):
            told[ERROR] = event.code or "_OTHER"
            span.set_status(Status(StatusCode.ERROR, event.message))
        make_instruments()[0].record(seconds, told)
        if span.is_recording():
            span.set_attributes({**told, **usage_attributes(event.usage or ())})
        span.end()
        for entry in event.usage or ():
            _count(entry.input_tokens, "input", entry.provider, entry.model)
            _count(entry.output_tokens, "output", entry.provider, entry.model)

    def refuse(self, code: str) -> None:
        """It was not let in."""
        span, self._span = self._span, None
        if span is not None:
            span.set_attribute(ERROR, code)
            span.end()


def _count(tokens: int | None, kind: str, provider: str | None, model: str | None) -> None:
    if tokens is not None:
        named = PROVIDERS.get(provider or "", provider or "unknown")
        make_instruments()[1].record(tokens, {TOKEN_TYPE: kind, PROVIDER: named, MODEL: model or "unknown"})


@cache
def make_instruments() -> tuple[Histogram, Histogram]:
    """How long runs take, and the tokens they use."""
    meter = get_meter("agui-container", __version__)
    return (
        meter.create_histogram("agui.run.duration", "s", "How long runs take."),
        meter.create_histogram("agui.run.tokens", "{token}", "Tokens that the model calls of runs use."),
    )
