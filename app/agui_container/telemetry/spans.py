"""Spans and metrics of a run, and the spans below it: model calls, tool calls and subagents.

Rules:

- The span of a run is current in the run's task, so all spans of the agent and of its framework are its children. The
  span ends when the run ends for its subscribers. ``session.id`` is set as baggage, because AWS's distribution copies
  it from there to the spans of other libraries.
- Each span below it is current until it ends, so the spans of client libraries are its children.
- A span records an error code or the class of the exception. The exception's text is only in the log, whose lines have
  the span's ids.
"""

from collections.abc import Sequence
from contextvars import Token
from functools import cache
from types import TracebackType
from typing import Protocol, Self

from ag_ui.core import AssistantMessage, Message, RunErrorEvent, RunFinishedEvent, TokenUsage
from opentelemetry import baggage, context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from agui_container import __version__
from agui_container.ports import Model, Prompt, RunContext, StopReason, ToolContent, ToolSuspension
from agui_container.protocol.errors import AppError
from agui_container.telemetry import semconv
from agui_container.telemetry.instruments import FIRST_EVENT, RUN_DURATION, RUN_TOKENS
from agui_container.telemetry.semconv import (
    AGENT,
    AGENT_ABOUT,
    AGENT_ID,
    ARGUMENTS,
    CONVERSATION,
    ERROR,
    FINISH,
    INPUT,
    INSTRUCTIONS,
    MODEL,
    OPERATION,
    OUTPUT,
    PROVIDER,
    PROVIDERS,
    REQUEST,
    RESULT,
    RUN,
    SESSION,
    STATUS,
    TOKEN_TYPE,
    TOOL,
    TOOL_CALL,
    TOOL_TYPE,
    Attributes,
    usage_attributes,
)

FINISHED = {
    StopReason.END: "stop",
    StopReason.TOOLS: "tool_call",
    StopReason.LENGTH: "length",
    StopReason.FILTERED: "content_filter",
}


@cache
def tracer() -> Tracer:
    """Return the tracer of this server. It uses the process's SDK even if that is set up later."""
    return trace.get_tracer("agui-container", __version__)


class TracedSpan:
    """Context manager for a span below the span of a run. Enter and exit it in the same task.

    The attributes of the run are added to ``attributes``.
    """

    __slots__ = ("_outer", "_span")

    def __init__(self, name: str, attributes: Attributes, ctx: RunContext, kind: SpanKind = SpanKind.INTERNAL) -> None:
        attributes[CONVERSATION] = ctx.part_of or ctx.thread_id
        if ctx.caller.session_id:
            attributes[SESSION] = ctx.caller.session_id
        self._span = tracer().start_span(name, kind=kind, attributes=attributes)
        self._outer: Token[Context] | None = None

    def __enter__(self) -> Self:
        if self._span is not trace.INVALID_SPAN:  # without an SDK there is no span to make current
            self._outer = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if self._outer is not None:
            context.detach(self._outer)
        if isinstance(error, Exception) and not isinstance(error, ToolSuspension):
            self.record_error(error)
        self._span.end()

    def record_error(self, error: BaseException) -> None:
        """Record a failure by its error code or its exception class."""
        self._span.set_attribute(ERROR, str(error.code) if isinstance(error, AppError) else type(error).__name__)
        self._span.set_status(StatusCode.ERROR)

    def _records_content(self) -> bool:
        return self._span.is_recording() and semconv.is_enabled()


class ModelAnswer(Protocol):
    @property
    def usage(self) -> Sequence[TokenUsage]:
        """Reported token usage of the answer."""

    @property
    def stop(self) -> StopReason:
        """Reason why the model stopped."""

    @property
    def messages(self) -> Sequence[Message]:
        """Messages of the answer."""


class ModelCall(TracedSpan):
    """Span of a model call, from the first request to the end of the answer, including retries."""

    __slots__ = ()

    def __init__(self, model: Model, prompt: Prompt, ctx: RunContext) -> None:
        provider = PROVIDERS.get(model.provider, model.provider)
        attributes: Attributes = {OPERATION: "chat", PROVIDER: provider, MODEL: model.name}
        super().__init__(f"chat {model.name}", attributes, ctx, SpanKind.CLIENT)
        if self._records_content():
            self._span.set_attribute(INSTRUCTIONS, semconv.system_instructions(prompt.system))
            self._span.set_attribute(INPUT, semconv.input_messages(prompt.messages))

    def record_answer(self, answer: ModelAnswer) -> None:
        if not self._span.is_recording():
            return
        messages = answer.messages
        calls = any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
        reason = FINISHED[StopReason.TOOLS if calls and answer.stop is StopReason.END else answer.stop]
        self._span.set_attributes({**usage_attributes(answer.usage), FINISH: (reason,)})
        if self._records_content():
            self._span.set_attribute(OUTPUT, semconv.output_message(messages, reason))


class ToolCall(TracedSpan):
    """Span of a call of a server-side tool. ``arguments`` is the JSON text of the model."""

    __slots__ = ()

    def __init__(self, name: str, call_id: str, arguments: str, ctx: RunContext) -> None:
        attributes: Attributes = {OPERATION: "execute_tool", TOOL: name, TOOL_CALL: call_id, TOOL_TYPE: "function"}
        super().__init__(f"execute_tool {name}", attributes, ctx)
        if self._records_content():
            self._span.set_attribute(ARGUMENTS, arguments)

    def record_result(self, result: ToolContent) -> None:
        if self._records_content():
            self._span.set_attribute(RESULT, semconv.result_text(result))


class Delegation(TracedSpan):
    """Span of a task of a subagent. ``key`` is its ``subagentRunId``."""

    __slots__ = ()

    def __init__(self, name: str, description: str, key: str, ctx: RunContext) -> None:
        attributes: Attributes = {OPERATION: "invoke_agent", AGENT: name, AGENT_ABOUT: description, AGENT_ID: key}
        super().__init__(f"invoke_agent {name}", attributes, ctx)


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
        self._span = span = tracer().start_span(INVOKE, attributes=attributes)
        if span.is_recording():
            current = trace.set_span_in_context(span)
            context.attach(baggage.set_baggage(SESSION, session, current) if session else current)

    def first_event(self, seconds: float) -> None:
        """Record the first event of the agent, ``seconds`` after the request."""
        FIRST_EVENT.record(seconds, {})

    def end(self, event: RunFinishedEvent | RunErrorEvent, status: str, seconds: float) -> None:
        """End the span and record the metrics."""
        span, self._span = self._span, None
        if span is None:
            return
        attributes = {STATUS: str(status)}
        if isinstance(event, RunErrorEvent):
            attributes[ERROR] = event.code or "_OTHER"
            span.set_status(Status(StatusCode.ERROR, event.message))
        RUN_DURATION.record(seconds, attributes)
        if span.is_recording():
            span.set_attributes({**attributes, **usage_attributes(event.usage or ())})
        span.end()
        for entry in event.usage or ():
            _count(entry.input_tokens, "input", entry.provider, entry.model)
            _count(entry.output_tokens, "output", entry.provider, entry.model)


def _count(tokens: int | None, kind: str, provider: str | None, model: str | None) -> None:
    if tokens is not None:
        provider_name = PROVIDERS.get(provider or "", provider or "unknown")
        RUN_TOKENS.record(tokens, {TOKEN_TYPE: kind, PROVIDER: provider_name, MODEL: model or "unknown"})
