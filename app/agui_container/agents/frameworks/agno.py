"""Agno's ``Agent`` and ``Team``, through Agno's own AG-UI interface.

Rules:

- Agno reads the last message of a thread and keeps the others in its database. An agent without one gets one in memory
  for each of the most recently used threads.
- A call that a person must confirm is left open by Agno (3.1). It becomes an interrupt, and the answer becomes the
  result with which Agno continues. Then Agno announces the call again, which is left out.
- Agno (3.1) sends the text of a tool's exception, and no usage. The text is replaced, and the usage is counted.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any, TypeAlias

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.os.interfaces.agui.router import run_entity
from agno.run.agent import ModelRequestCompletedEvent, RunEvent
from agno.run.team import ModelRequestCompletedEvent as TeamModelRequestCompletedEvent
from agno.team import Team

from agui_container.agents.frameworks.adapter import AdapterSource, end_asking
from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import TOOL_FAILED
from agui_container.agents.gate.approval import call_question
from agui_container.ports import RunContext, current_run
from agui_container.ports.agent import maybe_aclosing
from agui_core.turns import calls_of

Entity: TypeAlias = Agent | Team


def wrap(entity: Entity, _: str) -> AdapterSource:
    copies = PerThread(partial(copy_for_thread, entity))

    async def forget(thread: str) -> None:
        copies.drop(thread)
        if entity.db is not None:
            await entity.adelete_session(session_id=thread)

    return AdapterSource(partial(translate, copies), forget=forget)


async def translate(
    copies: PerThread[Entity], input: RunAgentInput, ctx: RunContext
) -> AsyncGenerator[BaseEvent, None]:
    user = ctx.caller.principal.subject if ctx.caller.principal else None
    known = {call.id for message in input.messages for call in calls_of(message)}
    calls = OpenCalls({tool.name for tool in input.tools or ()})
    async with (
        copies.acquire(input.thread_id) as entity,
        maybe_aclosing(run_entity(entity, with_decisions(input), user_id=user)) as events,
    ):
        async for event in events:
            calls.feed(event)
            if isinstance(event, RunFinishedEvent) and (questions := calls.questions()):
                yield end_asking(questions, ctx)
            elif not (isinstance(event, ANNOUNCEMENT) and event.tool_call_id in known):
                yield event


ANNOUNCEMENT = (ToolCallStartEvent, ToolCallArgsEvent, ToolCallEndEvent)


def with_decisions(input: RunAgentInput) -> RunAgentInput:
    results = [
        ToolMessage(
            id=f"decision-{entry.interrupt_id}",
            tool_call_id=entry.interrupt_id,
            content='{"accepted": true}' if entry.payload is True else '{"accepted": false}',
        )
        for entry in input.resume or ()
    ]
    return input.model_copy(update={"messages": [*input.messages, *results], "resume": None})


class OpenCalls:
    """Calls of the agent's own tools that have no result yet, with their arguments."""

    def __init__(self, client_tools: set[str]) -> None:
        self._client_tools = client_tools
        self._names: dict[str, str] = {}
        self._arguments: dict[str, str] = {}

    def feed(self, event: BaseEvent) -> None:
        match event:
            case ToolCallStartEvent() if event.tool_call_name not in self._client_tools:
                self._names[event.tool_call_id] = event.tool_call_name
            case ToolCallArgsEvent():
                self._arguments[event.tool_call_id] = self._arguments.get(event.tool_call_id, "") + event.delta
            case ToolCallResultEvent():
                self._names.pop(event.tool_call_id, None)

    def questions(self) -> list[Interrupt]:
        return [call_question(id_, name, self._arguments.get(id_, "")) for id_, name in self._names.items()]


def copy_for_thread(entity: Entity) -> Entity:
    update = {} if entity.db is not None else {"db": InMemoryDb(), "add_history_to_context": True}
    copied = entity.deep_copy(update=update)
    for name in ("arun", "acontinue_run"):
        setattr(copied, name, counted_and_without_exception_texts(getattr(copied, name)))
    return copied


def counted_and_without_exception_texts(run: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    async def filtered(*args: object, **options: object) -> AsyncGenerator[Any, None]:
        async with maybe_aclosing(run(*args, **options)) as chunks:
            async for chunk in chunks:
                if chunk.event.endswith(RunEvent.model_request_completed.value):
                    count(chunk)
                tool = getattr(chunk, "tool", None)
                if tool is not None and tool.tool_call_error and tool.result is not None:
                    tool.result = TOOL_FAILED
                yield chunk

    return filtered


def count(request: ModelRequestCompletedEvent | TeamModelRequestCompletedEvent) -> None:
    used = TokenUsage(
        provider=request.model_provider or "agno",
        model=request.model or "unknown",
        input_tokens=request.input_tokens or 0,
        output_tokens=request.output_tokens or 0,
    )
    current_run().usage.append(used)
