"""Agents of LlamaIndex: ``FunctionAgent`` and its relatives, and ``AgentWorkflow``, by the events of their runs.

Its package for AG-UI serves workflows of its own only, and gives the model results of tools as the user's words.

Rules:

- The messages of the thread are the chat history of each run, so nothing is kept between runs but what waits for a
  person.
- A workflow that asks a person (``InputRequiredEvent``) ends the run with an interrupt. Its state is kept in memory,
  for the most recently used threads. The answer is a ``HumanResponseEvent`` with the fields of the payload; an approval
  has the response yes or no.
- Tools of the client end the run, as tools with ``return_direct`` do. Each agent of a workflow has them.
- The text of a tool's exception is replaced before it is sent.
"""

import copy
import json
from collections.abc import AsyncGenerator, Container, Sequence
from contextlib import aclosing
from functools import partial

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    TokenUsage,
    ToolMessage,
)
from ag_ui.core import Tool as ToolSpec
from llama_index.core.agent.workflow import (
    AgentOutput,
    AgentStream,
    AgentWorkflow,
    BaseWorkflowAgent,
    ToolCall,
    ToolCallResult,
)
from llama_index.core.base.llms.types import ContentBlock, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from llama_index.core.workflow.handler import WorkflowHandler
from msgspec import Struct
from pydantic import BaseModel

from agui_container.agents.answer_events import AnswerEvents
from agui_container.agents.frameworks.adapter import AdapterSource, end_asking
from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import failed_tool, result_text
from agui_container.ports import RunContext
from agui_container.protocol.errors import validation_error

ANSWER = {"type": "object", "properties": {"response": {"type": "string"}}, "required": ["response"]}
"""JSON Schema of the answer to a workflow's question."""


class WaitingWorkflow(Struct):
    """The state of a thread's workflow, if it waits for a person, and the id of its question.

    ``memory`` is a part of the state that LlamaIndex (0.14) leaves out of its dictionary with pydantic 2.14.
    """

    state: dict[str, object] | None = None
    memory: object = None
    question: str = ""


def wrap(source: BaseWorkflowAgent | AgentWorkflow, _: str) -> AdapterSource:
    threads = PerThread(WaitingWorkflow)
    return AdapterSource(partial(translate, source, threads), {True: "yes", False: "no"}.__getitem__, threads.forget)


async def translate(
    source: BaseWorkflowAgent | AgentWorkflow,
    threads: PerThread[WaitingWorkflow],
    input: RunAgentInput,
    ctx: RunContext,
) -> AsyncGenerator[BaseEvent, None]:
    workflow = with_tools(source, [client_tool(spec) for spec in input.tools or ()])
    async with threads.acquire(input.thread_id) as waiting:
        if input.resume:
            handler = await continued(workflow, waiting, input.resume)
        else:
            history = [message for each in input.messages for message in chat_messages(each)]
            handler = workflow.run(chat_history=history)
        waiting.state = None
        async with aclosing(events_of(handler, {spec.name for spec in input.tools or ()}, ctx)) as events:
            async for event in events:
                if isinstance(event, Interrupt):
                    waiting.state, waiting.question = handler.ctx.to_dict(), event.id
                    waiting.memory = await handler.ctx.store.get("memory")
                    yield end_asking([event], ctx)
                    return
                yield event


async def continued(
    workflow: BaseWorkflowAgent | AgentWorkflow, waiting: WaitingWorkflow, answers: Sequence[ResumeEntry]
) -> WorkflowHandler:
    """Return the waiting workflow with its answer. Raises ``AppError`` VALIDATION_ERROR."""
    answer = next((entry for entry in answers if entry.interrupt_id == waiting.question), None)
    if waiting.state is None or answer is None:
        raise validation_error("The thread does not wait for this answer.")
    payload = answer.payload if answer.status == "resolved" else "no"
    fields = payload if isinstance(payload, dict) else {"response": payload}
    handler = workflow.run(ctx=Context.from_dict(workflow, waiting.state))
    await handler.ctx.store.set("memory", waiting.memory)
    handler.ctx.send_event(HumanResponseEvent(**fields))
    return handler


async def events_of(
    handler: WorkflowHandler, client_tools: Container[str], ctx: RunContext
) -> AsyncGenerator[BaseEvent | Interrupt, None]:
    """Yield the events of a run, and at its end the question that the workflow asks a person."""
    answer = AnswerEvents(ctx)
    try:
        async for event in handler.stream_events():
            match event:
                case AgentStream():
                    if event.thinking_delta:
                        yield answer.reasoning(event.thinking_delta)
                    if event.delta:
                        yield answer.text(event.delta)
                case AgentOutput():
                    count(event, ctx)
                case ToolCall():
                    yield answer.call(event.tool_id, json.dumps(event.tool_kwargs), event.tool_name)
                case ToolCallResult() if event.tool_name not in client_tools:
                    yield answer.result(event.tool_id, shown_result(event, ctx))
                    answer.begin_message()
                case InputRequiredEvent():
                    text = str(event.get("prefix", None) or "The agent asks for an answer.")
                    yield Interrupt(id=ctx.new_id(), reason="input_required", message=text, response_schema=ANSWER)
        await handler
    finally:
        if not handler.is_done():
            await handler.cancel_run()


def count(output: AgentOutput, ctx: RunContext) -> None:
    """Count the tokens that OpenAI's or Anthropic's answer names, which LlamaIndex passes on as it is."""
    raw = output.raw if isinstance(output.raw, dict) else {}
    used = raw.get("usage") or {}
    sent = used.get("prompt_tokens", used.get("input_tokens"))
    received = used.get("completion_tokens", used.get("output_tokens"))
    if sent is not None and received is not None:
        model = raw.get("model", "unknown")
        ctx.usage.append(TokenUsage(provider="llama_index", model=model, input_tokens=sent, output_tokens=received))


def shown_result(event: ToolCallResult, ctx: RunContext) -> str:
    if not event.tool_output.is_error:
        return str(event.tool_output.content)
    return failed_tool(event.tool_name, event.tool_output.exception, ctx)


def with_tools(
    source: BaseWorkflowAgent | AgentWorkflow, tools: Sequence[FunctionTool]
) -> BaseWorkflowAgent | AgentWorkflow:
    copied = copy.copy(source)
    if isinstance(copied, AgentWorkflow):
        copied.agents = {name: agent_with_tools(agent, tools) for name, agent in copied.agents.items()}
        return copied
    return agent_with_tools(copied, tools)


def agent_with_tools(agent: BaseWorkflowAgent, tools: Sequence[FunctionTool]) -> BaseWorkflowAgent:
    copied = copy.copy(agent)
    copied.tools = [*(agent.tools or ()), *tools]
    return copied


def client_tool(spec: ToolSpec) -> FunctionTool:
    """Make a tool with the client's JSON Schema, which the metadata would otherwise make of a pydantic class."""

    async def leave_open(**_: object) -> str:
        return ""

    metadata = ClientToolMetadata(description=spec.description, name=spec.name, fn_schema=BaseModel, return_direct=True)
    metadata.parameters = spec.parameters or {"type": "object", "properties": {}}
    return FunctionTool(async_fn=leave_open, metadata=metadata)


class ClientToolMetadata(ToolMetadata):  # type: ignore[misc]  # LlamaIndex has an environment of its own
    """Metadata of a tool that has a JSON Schema instead of a class."""

    parameters: dict[str, object]

    def get_parameters_dict(self) -> dict[str, object]:
        return self.parameters


def chat_messages(message: Message) -> list[ChatMessage]:
    match message:
        case ToolMessage():
            answered = {"tool_call_id": message.tool_call_id}
            return [ChatMessage(role="tool", content=result_text(message), additional_kwargs=answered)]
        case AssistantMessage():
            blocks: list[ContentBlock] = [TextBlock(text=message.content)] if message.content else []
            for call in message.tool_calls or ():
                arguments = call.function.arguments or "{}"
                blocks.append(ToolCallBlock(tool_call_id=call.id, tool_name=call.function.name, tool_kwargs=arguments))
            return [ChatMessage(role="assistant", blocks=blocks)]
        case _ if message.role in {"user", "system", "developer"}:
            role = "user" if message.role == "user" else "system"
            return [ChatMessage(role=role, blocks=blocks_of(message.content))]
    return []


def blocks_of(content: object) -> list[ContentBlock]:
    """Return text and images; LlamaIndex's models take nothing else."""
    if not isinstance(content, list):
        return [TextBlock(text=str(content))]
    blocks: list[ContentBlock] = []
    for part in content:
        if part.type == "text":
            blocks.append(TextBlock(text=part.text))
        elif part.type == "image" and part.source.type == "url":
            blocks.append(ImageBlock(url=part.source.value))
        elif part.type == "image" and part.source.type == "data":
            blocks.append(ImageBlock(image=part.source.value.encode(), image_mimetype=part.source.mime_type))
    return blocks
