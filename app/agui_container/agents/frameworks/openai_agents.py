"""Agents of OpenAI's Agents SDK. No package translates their events, so this module does.

Rules:

- The messages of the thread are the input of each run, so nothing is kept between runs but what waits for approval.
- Tools of the client are tools that need an approval which never comes: the run pauses and leaves their calls open.
  The agents of a handoff get none.
- A run that waits for an approval is kept in memory, for the most recently used threads. Its answer continues it.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    Message,
    RunAgentInput,
    TokenUsage,
    ToolMessage,
)
from ag_ui.core import Tool as ToolSpec
from agents import Agent, FunctionTool, RunContextWrapper, Runner, RunState
from agents.result import RunResultStreaming
from msgspec import Struct

from agui_container.agents.answer_events import AnswerEvents
from agui_container.agents.frameworks.adapter import AdapterSource, end_asking
from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import result_text
from agui_container.agents.gate.approval import call_question
from agui_container.ports import RunContext
from agui_container.protocol.errors import validation_error

Json = dict[str, Any]


class Waiting(Struct):
    """The paused run of a thread, if it waits for an approval."""

    state: RunState[Any] | None = None


def wrap(source: Agent[Any], _: str) -> AdapterSource:
    threads = PerThread(Waiting)
    return AdapterSource(partial(translate, source, threads), forget=threads.forget)


async def translate(
    agent: Agent[Any], threads: PerThread[Waiting], input: RunAgentInput, ctx: RunContext
) -> AsyncGenerator[BaseEvent, None]:
    tools = [client_tool(spec) for spec in input.tools or ()]
    own = agent.clone(tools=[*agent.tools, *tools])
    async with threads.acquire(input.thread_id) as waiting:
        given = answered(waiting, input) if input.resume else items_of(input.messages)
        result = Runner.run_streamed(own, given, context=ctx)
        waiting.state = None
        try:
            async with aclosing(events_of(result, ctx)) as events:
                async for event in events:
                    yield event
        finally:
            result.cancel()
        questions = questions_of(result, {tool.name for tool in tools})
        if questions:
            waiting.state = result.to_state()
            yield end_asking(questions, ctx)


def client_tool(spec: ToolSpec) -> FunctionTool:
    async def never(_: RunContextWrapper[Any], __: str) -> str:
        raise NotImplementedError

    return FunctionTool(
        name=spec.name,
        description=spec.description,
        params_json_schema=spec.parameters or {"type": "object", "properties": {}},
        on_invoke_tool=never,
        strict_json_schema=False,
        needs_approval=True,
    )


def answered(waiting: Waiting, input: RunAgentInput) -> RunState[Any]:
    """Return the paused run with its answers. Raises ``AppError`` VALIDATION_ERROR."""
    if waiting.state is None:
        raise validation_error("The thread does not wait for this answer.")
    answers = {entry.interrupt_id: entry.payload for entry in input.resume or ()}
    for item in waiting.state.get_interruptions():
        call_id = field_of(item.raw_item, "call_id")
        if call_id in answers:
            decide = waiting.state.approve if answers[call_id] is True else waiting.state.reject
            decide(item)
    return waiting.state


def questions_of(result: RunResultStreaming, client_tools: set[str]) -> list[Interrupt]:
    found = []
    for item in result.interruptions:
        name = item.tool_name or ""
        call_id = field_of(item.raw_item, "call_id")
        if name not in client_tools:
            found.append(call_question(call_id, name, field_of(item.raw_item, "arguments")))
    return found


def field_of(item: object, name: str) -> str:
    return str(item.get(name, "") if isinstance(item, dict) else getattr(item, name, ""))


# --- messages ---------------------------------------------------------------------------------------------------------


def items_of(messages: Sequence[Message]) -> list[Any]:
    return [item for message in messages for item in message_items(message)]


def message_items(message: Message) -> list[Json]:
    match message:
        case ToolMessage():
            return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": result_text(message)}]
        case AssistantMessage():
            said = [{"role": "assistant", "content": message.content}] if message.content else []
            calls = [
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.function.name,
                    "arguments": call.function.arguments or "{}",
                }
                for call in message.tool_calls or ()
            ]
            return [*said, *calls]
        case _ if message.role in {"user", "system", "developer"}:
            return [{"role": message.role, "content": parts_of(message.content)}]
    return []


def parts_of(content: object) -> object:
    """Return text as it is, and parts as the Responses API has them: text and images."""
    if not isinstance(content, list):
        return content
    return [part for each in content if (part := part_of(each))]


def part_of(part: Any) -> Json | None:  # noqa: ANN401 - one of AG-UI's parts
    if part.type == "text":
        return {"type": "input_text", "text": part.text}
    if part.type == "image" and part.source.type in {"url", "data"}:
        source = part.source
        url = source.value if source.type == "url" else f"data:{source.mime_type};base64,{source.value}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return None


# --- events -----------------------------------------------------------------------------------------------------------


async def events_of(result: RunResultStreaming, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
    stream = ResponseStream(ctx)
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            for each in stream.read(event.data):
                yield each
        elif event.type == "run_item_stream_event" and event.name in {"tool_output", "handoff_occured"}:
            item: Any = event.item
            if (call_id := field_of(item.raw_item, "call_id")) and hasattr(item, "output"):
                yield stream.events.result(call_id, str(item.output))
            elif call_id:
                yield stream.events.result(call_id, field_of(item.raw_item, "output"))


class ResponseStream:
    """Events of the model's responses. One message has the text and the calls of one response."""

    def __init__(self, ctx: RunContext) -> None:
        self.events = AnswerEvents(ctx)
        self._ctx = ctx
        self._call_ids: dict[int, str] = {}

    def read(self, data: Any) -> list[BaseEvent]:  # noqa: ANN401 - a union of OpenAI's events
        match data.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return [self.events.text(data.delta)]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return [self.events.reasoning(data.delta)]
            case "response.output_item.added" if data.item.type == "function_call":
                self._call_ids[data.output_index] = data.item.call_id
                return [self.events.call(data.item.call_id, data.item.arguments or "", data.item.name)]
            case "response.function_call_arguments.delta":
                return [self.events.call(self._call_ids[data.output_index], data.delta)]
            case "response.completed":
                self._count(data.response)
                self.events.begin_message()
        return []

    def _count(self, response: Any) -> None:  # noqa: ANN401 - OpenAI's Response
        if response.usage is not None:
            used = TokenUsage(
                provider="openai",
                model=response.model or "unknown",
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
            )
            self._ctx.usage.append(used)
