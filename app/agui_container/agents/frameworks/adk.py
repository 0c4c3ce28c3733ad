"""Agents of Google's ADK, through ``ag-ui-adk`` (0.11).

Rules:

- Sessions are in memory. The package drops a session that was not used for ``IDLE_SECONDS``. A thread whose session is
  gone begins again from the client's earlier messages. So does a thread whose messages were edited or sent again: the
  package answers messages that it knows with nothing.
- A root agent without ``AGUIToolset`` gets one, because the package offers the client's tools only there.
- The package's call ``adk_request_confirmation`` is left out: its interrupt is that of the call that waits.
- Schemas of the client's tools are changed to Gemini's form, which has one type and choices of strings alone. The
  package fails every run of a client with another schema.
- The package leaves out the usage of models, and its task of a run goes on when nobody reads it. Sessions count the
  usage here, and a stream that is closed early cancels the task.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from ag_ui_adk import ADKAgent, AGUIToolset
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session
from msgspec import Struct

from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.gate.approval import call_question
from agui_container.ports import RunContext, current_run
from agui_container.ports.agent import maybe_aclosing

CONFIRMATION = "adk_request_confirmation"
IDLE_SECONDS = 3600
NO_LIMIT = 1_000_000
"""Runs at once and seconds of a run. The engine limits both."""


def wrap(source: BaseAgent | ADKAgent, _: str) -> AdapterSource:
    if isinstance(source, ADKAgent):
        return AdapterSource(partial(translate, source))
    sessions, threads = CountingSessions(), PerThread(SentMessages)
    adapter = ADKAgent(
        adk_agent=with_client_tools(source),
        app_name=source.name,
        user_id_extractor=lambda request: request.thread_id,
        session_service=sessions,
        use_thread_id_as_session_id=True,
        session_timeout_seconds=IDLE_SECONDS,
        max_concurrent_executions=NO_LIMIT,
        execution_timeout_seconds=NO_LIMIT,
        emit_interrupt_outcome=True,
    )

    async def delete(session: str) -> None:
        await sessions.delete_session(app_name=source.name, user_id=session, session_id=session)

    async def answer(input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        async with threads.acquire(input.thread_id) as sent:
            if sent.is_edited_by(input):
                await delete(sent.session_of(input.thread_id))
                sent.edits += 1
            sent.ids = ids_of(input)
            in_session = input.model_copy(update={"thread_id": sent.session_of(input.thread_id)})
            async with maybe_aclosing(translate(adapter, in_session, ctx)) as events:
                async for event in events:
                    yield event

    async def forget(thread: str) -> None:
        async with threads.acquire(thread) as sent:
            await delete(sent.session_of(thread))
        threads.drop(thread)

    return AdapterSource(answer, forget=forget)


class SentMessages(Struct):
    """The messages of a thread that were sent last, and how often they were no continuation of those before."""

    ids: Sequence[str] = ()
    edits: int = 0

    def is_edited_by(self, input: RunAgentInput) -> bool:
        ids = ids_of(input)
        return ids[: len(self.ids)] != self.ids or (ids == self.ids and not input.resume)

    def session_of(self, thread: str) -> str:
        return f"{thread}.{self.edits}" if self.edits else thread


def ids_of(input: RunAgentInput) -> Sequence[str]:
    return tuple(each.id for each in input.messages if not isinstance(each, AssistantMessage))


class CountingSessions(InMemorySessionService):  # type: ignore[misc]  # ADK has an environment of its own
    """Sessions that count the tokens in events of models."""

    async def append_event(self, session: Session, event: Event) -> Event:
        used = event.usage_metadata
        if used is not None:
            counts = {"input_tokens": used.prompt_token_count, "output_tokens": used.candidates_token_count}
            current_run().usage.append(TokenUsage(provider="adk", model=event.model_version or "unknown", **counts))
        return await super().append_event(session, event)


async def translate(adapter: ADKAgent, input: RunAgentInput, _: RunContext) -> AsyncGenerator[BaseEvent, None]:
    questions: dict[str, str] = {}
    execution = RunningExecution(adapter, input)
    try:
        async for event in adapter.run(with_gemini_schemas(input)):
            execution.find()
            match event:
                case ToolCallStartEvent() if event.tool_call_name == CONFIRMATION:
                    questions[event.tool_call_id] = ""
                case ToolCallArgsEvent() if event.tool_call_id in questions:
                    questions[event.tool_call_id] += event.delta
                case ToolCallEndEvent() if event.tool_call_id in questions:
                    pass
                case RunFinishedEvent(outcome=RunFinishedInterruptOutcome(interrupts=interrupts)):
                    named = [of_waiting_call(each, questions.get(each.id)) for each in interrupts]
                    yield event.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=named)})
                case _:
                    yield event
    finally:
        await execution.cancel()


class RunningExecution:
    """The package's task of a run."""

    def __init__(self, adapter: ADKAgent, input: RunAgentInput) -> None:
        self._adapter = adapter
        self._key = (input.thread_id, adapter._get_user_id(input), adapter._get_app_name(input))  # noqa: SLF001 - its key
        self._execution: Any = None

    def find(self) -> None:
        found = self._adapter._active_executions.get(self._key)  # noqa: SLF001 - as above
        self._execution = found or self._execution

    async def cancel(self) -> None:
        if self._execution is not None:
            await self._execution.cancel()


def of_waiting_call(interrupt: Interrupt, arguments: str | None) -> Interrupt:
    if arguments is None:
        return interrupt
    call = json.loads(arguments)["originalFunctionCall"]
    return call_question(call["id"], call["name"], json.dumps(call["args"]), interrupt.id)


def with_client_tools(agent: BaseAgent) -> BaseAgent:
    if not isinstance(agent, LlmAgent) or any(isinstance(tool, AGUIToolset) for tool in agent.tools):
        return agent
    return agent.clone(update={"tools": [*agent.tools, AGUIToolset()]})


def with_gemini_schemas(input: RunAgentInput) -> RunAgentInput:
    tools = [tool.model_copy(update={"parameters": gemini_schema(tool.parameters)}) for tool in input.tools or ()]
    return input.model_copy(update={"tools": tools})


def gemini_schema(schema: object) -> dict[str, object]:
    """Return a JSON Schema with one type or ``anyOf``, choices of strings, and no boolean in place of a schema."""
    if not isinstance(schema, dict):
        return {}
    found = dict(schema)
    if isinstance(types := found.get("type"), list):
        del found["type"]
        others = [each for each in types if each != "null"]
        found |= {"type": others[0]} if len(others) == 1 else {"anyOf": [{"type": each} for each in others or types]}
        found |= {"nullable": True} if "null" in types else {}
    choices = found.get("enum", [])
    if not all(isinstance(choice, str) for choice in choices):
        del found["enum"]
        found["description"] = f"{found.get('description', '')} One of: {json.dumps(choices)}".strip()
    if isinstance(properties := found.get("properties"), dict):
        found["properties"] = {name: gemini_schema(each) for name, each in properties.items()}
    if "items" in found:
        items = found["items"]
        found["items"] = {"anyOf": list(map(gemini_schema, items))} if isinstance(items, list) else gemini_schema(items)
    return found | {name: list(map(gemini_schema, found[name])) for name in ("anyOf", "oneOf") if name in found}
