"""Adapter for a compiled LangGraph graph, through ``ag-ui-langgraph``.

Rules:
- Each run has its own adapter, because the package stores the run's state in it.
- A graph without a checkpointer gets an in-memory one for the run, because the package reads the thread's state. The
  history of such a graph is the messages that the client sends.
- Open interrupts are read from the checkpoint before the run, so that each answer goes to the interrupt that it names.

What is said of the package is true of its version 0.0.47.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ag_ui.core import (
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    UserMessage,
)
from ag_ui.core import ToolMessage as AgUiToolMessage
from ag_ui_langgraph import LangGraphAgent
from ag_ui_langgraph.interrupts import DEFAULT_RESUME_SENTINEL_CANCELLED
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables.config import RunnableConfig, merge_configs
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from msgspec import Struct

from agui_container.agents.file_data import FileData
from agui_container.agents.frameworks.langchain_approvals import join_answers, requests_of, split_requests
from agui_container.agents.frameworks.langchain_tools import langchain_content
from agui_container.agents.frameworks.langgraph_events import LosslessGraph, with_calls
from agui_container.agents.frameworks.translation import (
    awaits_client,
    check_events,
    end_calls,
    filter_answers,
    own_input,
)
from agui_container.log_values import format_fields
from agui_container.ports import Agent, Item, RunContext, ToolContent, thread_key
from agui_container.ports.agent import maybe_aclosing
from agui_container.protocol.errors import validation_error

HOOKS = ("_interrupts_to_agui", "_build_command_from_agui_resume")
"""Methods of ``LangGraphAgent`` that map interrupts and answers. A subclass that overrides one has its own ids."""

logger = logging.getLogger(__name__)


def wrap(source: object, name: str) -> Agent:
    if isinstance(source, LangGraphAgent):
        return GraphAgent(source)
    # Interrupts as in AG-UI 1.0. RAW events are off because each would repeat the graph's whole state.
    return GraphAgent(LangGraphAgent(name=name, graph=source, emit_interrupt_outcome=True, emit_raw_events=False))


class GraphAgent(Struct, frozen=True):
    """Implements ``ports.Agent``, ``ports.ThreadCleanup``. The context is in ``config["configurable"]["ctx"]``."""

    template: LangGraphAgent

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield nothing until all results of the last turn are sent. Raises ``AppError`` VALIDATION_ERROR."""
        check_form(input)
        if awaits_client(input):
            return
        adapter = self._adapter(ctx)
        waiting = await self._pending_interrupts(adapter, ctx.thread_key)
        adapter.graph.known = waiting.state
        deferred = [message for message in input.messages if waiting.is_deferred(message)]
        answers: Sequence[ResumeEntry]
        if waiting.is_unfinished and input.resume:
            answers = input.resume  # the graph has them, and continues with the node that was interrupted by a call
            adapter._build_command_from_agui_resume = continue_graph  # noqa: SLF001 - a documented hook
        else:
            named = {interrupt.id for interrupt in waiting.questions}
            answers = join_answers(filter_answers(input.resume or (), named, ctx), waiting.interrupts)
        files = FileData(ctx)
        messages = await files.inline([message for message in input.messages if not waiting.is_deferred(message)])
        own = input.model_copy(update={"resume": list(answers) or None, "messages": messages})
        request = own_input(own, ctx, waiting.known_ids)
        async with maybe_aclosing(check_events(end_calls(adapter.run(request)), ctx)) as events:
            async for event in events:
                shown = await self._with_questions(adapter, event, ctx)
                if isinstance(shown, MessagesSnapshotEvent):
                    shown = with_messages(files.with_handles(shown), input.messages, deferred)
                yield shown

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        if self.template.graph.checkpointer:
            try:
                await self.template.graph.checkpointer.adelete_thread(thread_key(owner, thread_id))
            except NotImplementedError:
                logger.warning(
                    "checkpointer cannot delete threads, checkpoints stay %s", format_fields({"thread": thread_id})
                )

    async def _pending_interrupts(self, adapter: LangGraphAgent, thread: str) -> "PendingInterrupts":
        if not self.template.graph.checkpointer:
            return PendingInterrupts()
        config = {"configurable": {**adapter.config["configurable"], "thread_id": thread}}
        state = await adapter.graph.aget_state(config)
        interrupts = adapter._interrupts_to_agui(adapter._collect_interrupts(state.tasks))  # noqa: SLF001 - as the package reads them
        messages = state.values.get("messages", ())
        known_ids = frozenset(str(message.id) for message in messages)
        questions = split_requests(interrupts, messages)
        return PendingInterrupts(interrupts, questions, known_ids, bool(state.next) and not interrupts, state.values)

    async def _with_questions(self, adapter: LangGraphAgent, event: Item, ctx: RunContext) -> Item:
        """Return the event with an interrupt for each call that LangChain's middleware asks about."""
        if not (isinstance(event, RunFinishedEvent) and isinstance(event.outcome, RunFinishedInterruptOutcome)):
            return event
        if not any(map(requests_of, event.outcome.interrupts)):
            return event
        waiting = await self._pending_interrupts(adapter, ctx.thread_key)
        return event.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=list(waiting.questions))})

    def _adapter(self, ctx: RunContext) -> LangGraphAgent:
        adapter = self.template.clone()
        own: RunnableConfig = {"configurable": {"ctx": ctx}, "callbacks": [StartedCalls(ctx)]}
        adapter.config = merge_configs(adapter.config, own)
        graph = adapter.graph
        adapter.graph = LosslessGraph(graph if graph.checkpointer else graph.copy({"checkpointer": InMemorySaver()}))
        adapter.langgraph_default_merge_state = partial(merge_state, adapter.langgraph_default_merge_state)
        if all(getattr(type(adapter), hook) is getattr(LangGraphAgent, hook) for hook in HOOKS):
            adapter._build_command_from_agui_resume = answers_by_interrupt  # noqa: SLF001 - a documented hook
        return adapter


class StartedCalls(BaseCallbackHandler):
    """Records which of the graph's own tools start. The gate records those of the server."""

    run_inline = True

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,  # noqa: ARG002 - as in the base class
        *,
        tool_call_id: str | None = None,
        **_: Any,  # noqa: ANN401 - as in the base class
    ) -> None:
        if tool_call_id and serialized.get("name") not in self._ctx.tools:
            self._ctx.turn.started_calls.add(tool_call_id)


MergeState = Callable[[dict[str, Any], Sequence[BaseMessage], RunAgentInput], dict[str, Any]]
"""The package's function that adds a request to the state of a graph."""


def merge_state(
    merge: MergeState, state: dict[str, Any], messages: Sequence[BaseMessage], input: RunAgentInput
) -> dict[str, Any]:
    """Change results of client tools, too, and convert results of parts. The package adds only messages under new ids.

    LangChain takes the parts themselves for objects that it does not know, and makes a text of them.
    """
    parts = results_of_parts(input.messages)
    for message in messages:
        if isinstance(message, ToolMessage) and message.id in parts:
            message.content = langchain_content(parts[message.id])
    client_tools = {tool.name for tool in input.tools or ()}
    calls = {
        call["id"] for message in with_calls(messages) for call in message.tool_calls if call["name"] in client_tools
    }
    known = {message.id: message.content for message in state.get("messages", ()) if isinstance(message, ToolMessage)}
    changed = [
        message
        for message in messages
        if isinstance(message, ToolMessage)
        and message.tool_call_id in calls
        and known.get(message.id, message.content) != message.content
    ]
    merged = merge(state, messages, input)
    return {**merged, "messages": [*changed, *merged["messages"]]}


class PendingInterrupts(Struct, frozen=True):
    """The open interrupts of a checkpoint, and the questions for the client in them.

    It ``is_unfinished`` if a node has not ended and waits for no interrupt. ``state`` has the values of the graph.
    """

    interrupts: Sequence[Interrupt] = ()
    questions: Sequence[Interrupt] = ()
    known_ids: frozenset[str] = frozenset()
    is_unfinished: bool = False
    state: Mapping[str, object] = {}

    def is_deferred(self, message: Message) -> bool:
        """Return True for a user message that must wait until the interrupts are answered.

        The graph does not have it yet. It would stand between a call and its result, which models reject.
        """
        return bool(self.interrupts) and isinstance(message, UserMessage) and message.id not in self.known_ids


def with_messages(
    event: MessagesSnapshotEvent, sent: Sequence[Message], deferred: Sequence[Message]
) -> MessagesSnapshotEvent:
    """Restore results of parts, of which the package has one text, and append deferred messages.

    A client deletes what a snapshot lacks.
    """
    parts = results_of_parts(sent)
    messages = [
        message.model_copy(update={"content": parts[message.id]}) if message.id in parts else message
        for message in event.messages
    ]
    return event.model_copy(update={"messages": [*messages, *deferred]})


def results_of_parts(messages: Sequence[Message]) -> dict[str, ToolContent]:
    results = (message for message in messages if isinstance(message, AgUiToolMessage))
    return {result.id: result.content for result in results if not isinstance(result.content, str)}


def answers_by_interrupt(entries: Sequence[ResumeEntry], **_: object) -> Command[str]:
    """The package passes a single answer to any open interrupt, and several answers to none."""
    return Command(resume={entry.interrupt_id: resume_value(entry) for entry in entries})


def continue_graph(*_: object, **__: object) -> None:
    """Return no input, with which a graph continues from its checkpoint. The answers are in it."""


def resume_value(entry: ResumeEntry) -> object:
    """Return the value for ``interrupt()`` in the graph: the payload, or the package's mark of a cancellation."""
    if entry.status == "resolved":
        return entry.payload
    return {DEFAULT_RESUME_SENTINEL_CANCELLED: True, "interrupt_id": entry.interrupt_id}


def check_form(input: RunAgentInput) -> None:
    """Raise ``AppError`` VALIDATION_ERROR if a field is not an object, which the package does not check."""
    for field, value in (("state", input.state), ("forwardedProps", input.forwarded_props)):
        if value and not isinstance(value, dict):
            raise validation_error(f"{field}: must be an object for this agent.")
