"""Agents of Langroid, by the answers of their models.

Its package for AG-UI (0.2) offers the model no tools of the client, ends a run behind the first call, and blocks while
the model answers.

Rules:

- The messages of the thread are the history of each run, so nothing is kept between runs.
- Calls go through the model's API, whatever ``use_tools`` says, because calls in a text have no ids.
- Tools are called in a thread, because most of Langroid's block.
- A task is served as its agent. A task with subtasks is refused, because they have no events.
- A stream that breaks off fails the run. Langroid (0.69) only logs that, and takes what came for the answer.
- Langroid prints no conversations.
"""

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Message,
    RunAgentInput,
    TokenUsage,
    ToolMessage,
)
from ag_ui.core import Tool as ToolSpec
from anyio import to_thread
from langroid import ChatAgent, Entity, Task
from langroid import ToolMessage as LangroidTool
from langroid.agent.chat_document import ChatDocMetaData, ChatDocument
from langroid.language_models.base import (
    LLMFunctionCall,
    LLMFunctionSpec,
    LLMMessage,
    OpenAIToolCall,
    Role,
    StreamEventType,
)
from langroid.utils.configuration import settings
from langroid.utils.object_registry import ObjectRegistry

from agui_container.agents.answer_events import AnswerEvents
from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.agents.frameworks.translation import failed_tool, result_text
from agui_container.ports import RunContext
from agui_core.content import text_of


def wrap(source: ChatAgent | Task, name: str) -> AdapterSource:
    if isinstance(source, Task) and source.sub_tasks:
        raise AgentLoadError(f"'{name}' is a task with subtasks: write a function that runs it, or name its agent.")
    agent = source.agent if isinstance(source, Task) else source
    settings.quiet = True
    return AdapterSource(partial(translate, agent))


async def translate(source: ChatAgent, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
    agent = agent_for_run(source, input.tools or ())
    agent.message_history.extend(message for each in input.messages for message in llm_messages(each))
    client_tools, events = {tool.name for tool in input.tools or ()}, AnswerEvents(ctx)
    while True:
        response: ChatDocument | None = None
        async for item in respond(agent):
            match item:
                case ChatDocument():
                    response = item
                case (StreamEventType.REASONING, delta):
                    yield events.reasoning(delta)
                case (StreamEventType.TEXT, delta):
                    yield events.text(delta)
        if response is None:
            return
        count(response, agent, ctx)
        calls = [call for call in response.oai_tool_calls or () if call.function]
        for call in calls:
            yield events.call(call.id, json.dumps(call.function.arguments or {}), call.function.name)
        own = [call for call in calls if call.function.name not in client_tools]
        for call in own:
            content = await call_tool(agent, call, ctx)
            yield events.result(call.id, content)
            agent.message_history.append(LLMMessage(role=Role.TOOL, tool_call_id=call.id, content=content))
        agent.oai_tool_calls = []
        events.begin_message()
        if not own or len(own) < len(calls):
            return


def agent_for_run(source: ChatAgent, tools: Sequence[ToolSpec]) -> ChatAgent:
    """Copy the agent, because clones of Langroid (0.69) lack the handlers of tools, and block for half a second."""
    agent = copy.copy(source)
    agent.config = source.config.model_copy(update={"use_functions_api": True, "use_tools": False, "show_stats": False})
    agent.llm = copy.copy(source.llm)
    agent.llm.config = source.llm.config.model_copy()
    agent.callbacks = copy.copy(source.callbacks)
    agent.user_message, agent.oai_tool_calls, agent.oai_tool_id2call = None, [], {}
    for name in ("llm_tools_map", "llm_functions_map", "llm_functions_usable"):
        setattr(agent, name, getattr(source, name).copy())
    for tool in tools:
        agent.llm_tools_map[tool.name] = LangroidTool  # asked whether the tool is strict
        agent.llm_functions_map[tool.name] = LLMFunctionSpec(
            name=tool.name, description=tool.description, parameters=tool.parameters or {"type": "object"}
        )
        agent.llm_functions_usable.add(tool.name)
    agent.init_message_history()
    return agent


async def respond(agent: ChatAgent) -> AsyncGenerator[tuple[StreamEventType, str] | ChatDocument, None]:
    """Yield the pieces of the model's answer to the history, then the answer."""
    pieces: asyncio.Queue[tuple[StreamEventType, str] | None] = asyncio.Queue()
    is_streamed = False

    async def start() -> Any:  # noqa: ANN401 - a function
        return add

    async def add(delta: str, kind: StreamEventType) -> None:
        if delta:
            pieces.put_nowait((kind, delta))

    agent.callbacks.start_llm_stream_async = start
    last = agent.message_history[-1]
    asked = ChatDocument(
        content=last.content or "" if last.role == Role.USER else "", metadata=ChatDocMetaData(sender=Entity.USER)
    )
    last.chat_document_id = asked.id()  # so that it is not added to the history
    task = asyncio.create_task(agent.llm_response_async(asked))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while (piece := await pieces.get()) is not None:
            is_streamed = is_streamed or piece[0] is StreamEventType.TEXT
            yield piece
        if (response := task.result()) is not None:
            ObjectRegistry.remove(response.id())
            if is_streamed and response.metadata.finish_reason is None:
                raise EOFError("the answer of the model broke off")
            if response.content and not is_streamed:
                yield StreamEventType.TEXT, response.content
            yield response
    finally:
        ObjectRegistry.remove(asked.id())
        task.cancel()
        await asyncio.wait([task])


async def call_tool(agent: ChatAgent, call: OpenAIToolCall, ctx: RunContext) -> str:
    """Call a tool of the agent in a thread with an event loop, where functions and coroutines may run."""
    asked = ChatDocument(content="", oai_tool_calls=[call], metadata=ChatDocMetaData(sender=Entity.LLM))
    try:
        made = await to_thread.run_sync(asyncio.run, agent.agent_response_async(asked), abandon_on_cancel=True)
    except Exception as error:  # noqa: BLE001 - the tool's
        return failed_tool(call.function.name, error, ctx)
    finally:
        ObjectRegistry.remove(asked.id())
    if made is None:
        return "Error: there is no such tool."
    ObjectRegistry.remove(made.id())
    return str(made.content)


def count(response: ChatDocument, agent: ChatAgent, ctx: RunContext) -> None:
    usage = response.metadata.usage
    if usage is not None:
        used: Mapping[str, int] = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
        ctx.usage.append(TokenUsage(provider="langroid", model=agent.config.llm.chat_model, **used))


def llm_messages(message: Message) -> list[LLMMessage]:
    match message:
        case ToolMessage():
            return [LLMMessage(role=Role.TOOL, tool_call_id=message.tool_call_id, content=result_text(message))]
        case AssistantMessage():
            calls = [
                OpenAIToolCall(
                    id=call.id,
                    function=LLMFunctionCall(
                        name=call.function.name, arguments=json.loads(call.function.arguments or "{}")
                    ),
                )
                for call in message.tool_calls or ()
            ]
            return [LLMMessage(role=Role.ASSISTANT, content=message.content or None, tool_calls=calls or None)]
        case _ if message.role in {"user", "system", "developer"}:
            role = Role.USER if message.role == "user" else Role.SYSTEM
            return [LLMMessage(role=role, content=text_of(message.content))]
    return []
