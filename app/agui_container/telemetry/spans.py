"""The spans below a run's: model calls, tool calls, subagents.

Rule: each is current while it lasts, so that what a client library traces of its requests is below it. A span tells how
something failed, by a code or the exception's class; what the exception says is in the log, which has the span's ids.
"""

from collections.abc import Sequence
from contextvars import Token
from functools import cache
from types import TracebackType
from typing import Protocol, Self

from ag_ui.core import AssistantMessage, Message, TokenUsage
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, Tracer

from agui_container import __version__
from agui_container.ports import Model, Prompt, RunContext, StopReason, Suspended, ToolContent
from agui_container.protocol.errors import AppError
from agui_container.telemetry import semconv
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
    RESULT,
    SESSION,
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
    """Makes the spans of this server; of the process's SDK, also where that is set up later."""
    return trace.get_tracer("agui-container", __version__)


class TracedSpan:
    """A part of a run, while it goes on. Entered, and left in the same task.

    Args:
        name: of the span.
        attributes: what is known from the beginning; those of the run are added.
        ctx: of the run, or of the part of it that this is a part of.
    """

    __slots__ = ("_outer", "_span")

    def __init__(self, name: str, attributes: Attributes, ctx: RunContext, kind: SpanKind = SpanKind.INTERNAL) -> None:
        attributes[CONVERSATION] = ctx.part_of or ctx.thread_id
        if ctx.caller.session_id:
            attributes[SESSION] = ctx.caller.session_id
        self._span = tracer().start_span(name, kind=kind, attributes=attributes)
        self._outer: Token[Context] | None = None

    def __enter__(self) -> Self:
        if self._span is not trace.INVALID_SPAN:  # where nobody traces there is nothing to be current
            self._outer = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if self._outer is not None:
            context.detach(self._outer)
        if isinstance(error, Exception) and not isinstance(error, Suspended):
            self.record_error(error)
        self._span.end()

    def record_error(self, error: BaseException) -> None:
        """It has gone wrong."""
        self._span.set_attribute(ERROR, str(error.code) if isinstance(error, AppError) else type(error).__name__)
        self._span.set_status(StatusCode.ERROR)

    def _tells(self) -> bool:
        """Whether somebody records what is said in it."""
        return self._span.is_recording() and semconv.is_enabled()


class ModelAnswer(Protocol):
    """What a model has said."""

    @property
    def usage(self) -> Sequence[TokenUsage]:
        """What it cost, as far as that was reported."""

    @property
    def stop(self) -> StopReason:
        """Why it stopped."""

    @property
    def messages(self) -> Sequence[Message]:
        """What was said."""


class ModelCall(TracedSpan):
    """A call of a model, from its request to the end of its answer, whatever tries it takes."""

    __slots__ = ()

    def __init__(self, model: Model, prompt: Prompt, ctx: RunContext) -> None:
        provider = PROVIDERS.get(model.provider, model.provider)
        attributes: Attributes = {OPERATION: "chat", PROVIDER: provider, MODEL: model.name}
        super().__init__(f"chat {model.name}", attributes, ctx, SpanKind.CLIENT)
        if self._tells():
            self._span.set_attribute(INSTRUCTIONS, semconv.system_instructions(prompt.system))
            self._span.set_attribute(INPUT, semconv.input_messages(prompt.messages))

    def record_answer(self, answer: ModelAnswer) -> None:
        """The model has said all."""
        if not self._span.is_recording():
            return
        messages = answer.messages
        calls = any(isinstance(message, AssistantMessage) and message.tool_calls for message in messages)
        reason = FINISHED[StopReason.TOOLS if calls and answer.stop is StopReason.END else answer.stop]
        self._span.set_attributes({**usage_attributes(answer.usage), FINISH: (reason,)})
        if self._tells():
            self._span.set_attribute(OUTPUT, semconv.output_message(messages, reason))


class ToolCall(TracedSpan):
    """A call of a tool of this server; ``arguments`` is the model's text."""

    __slots__ = ()

    def __init__(self, name: str, call_id: str, arguments: str, ctx: RunContext) -> None:
        attributes: Attributes = {OPERATION: "execute_tool", TOOL: name, TOOL_CALL: call_id, TOOL_TYPE: "function"}
        super().__init__(f"execute_tool {name}", attributes, ctx)
        if self._tells():
            self._span.set_attribute(ARGUMENTS, arguments)

    def record_result(self, result: ToolContent) -> None:
        """What the tool gave."""
        if self._tells():
            self._span.set_attribute(RESULT, semconv.result_text(result))


class Delegation(TracedSpan):
    """A task that a subagent works at; ``key`` is its ``subagentRunId``."""

    __slots__ = ()

    def __init__(self, name: str, description: str, key: str, ctx: RunContext) -> None:
        attributes: Attributes = {OPERATION: "invoke_agent", AGENT: name, AGENT_ABOUT: description, AGENT_ID: key}
        super().__init__(f"invoke_agent {name}", attributes, ctx)
