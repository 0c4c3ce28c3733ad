"""Adapter for a compiled LangGraph graph, through ``ag-ui-langgraph``.

Rules:
- Each run has its own adapter, because the package stores the run's state in it.
- A graph without a checkpointer gets an in-memory one for the run, because the package reads the thread's state. The
  history of such a graph is the messages that the client sends.
- Open interrupts are read from the checkpoint before the run, so that each answer goes to the interrupt that it names.

What is said of the package is true of its version 0.0.47. ``LosslessGraph`` changes only events that it would drop or
contradict:
- A message that a model returns without streaming becomes one chunk of a stream. Otherwise clients would get it only
  in the snapshot at the end, and a call of a client tool would not count as pending.
- A chunk with both name and arguments of a call, or with several calls, is split into a chunk for each. Otherwise only
  the name of the first call would be used.
- A message with calls that a node returns without a chat model becomes a stream as well. Otherwise the package would
  announce the calls together with their results and without their message. Clients would put the message behind the
  results, and models reject that order.
- A tool message gets its id before it is announced. Otherwise the announced id would differ from the id in the
  snapshot, and clients would send the message again behind the answer to it, which models reject.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

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
from ag_ui_langgraph import LangGraphAgent
from ag_ui_langgraph.interrupts import DEFAULT_RESUME_SENTINEL_CANCELLED
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.runnables.config import RunnableConfig, merge_configs
from langchain_core.runnables.schema import StreamEvent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from msgspec import Struct
from pydantic_core import to_json

from agui_container.agents.frameworks.langchain_approvals import join_answers, requests_of, split_requests
from agui_container.agents.frameworks.translation import (
    awaits_client,
    check_events,
    end_calls,
    filter_answers,
    own_input,
)
from agui_container.log_values import format_fields
from agui_container.ports import Agent, Item, RunContext, thread_key
from agui_container.ports.agent import maybe_aclosing
from agui_container.protocol.errors import validation_error

Graph = CompiledStateGraph[Any, Any, Any, Any]


class LosslessGraph:
    """Proxy of a graph that repairs its events. Every other attribute is the graph's own."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> object:
        return getattr(self._graph, name)

    def get_config_jsonschema(self) -> dict[str, Any]:
        """The graph's own method is deprecated in LangGraph 1."""
        return self._graph.get_context_jsonschema() or {}

    async def astream_events(self, **options: Any) -> AsyncGenerator[StreamEvent, None]:  # noqa: ANN401 - the graph's own
        streamed: set[str] = set()
        seen = SeenMessages()
        async with maybe_aclosing(self._graph.astream_events(**options)) as events:
            async for event in events:
                if event["event"] == "on_chat_model_stream":
                    streamed.add(event["run_id"])
                for message in seen.add(event):
                    for announcement in _announce(event, message):
                        yield announcement
                for repaired in _repair(event, is_streamed=event["run_id"] in streamed):
                    yield repaired


class SeenMessages:
    """Ids of assistant messages and calls that the client has, or gets through events of a chat model."""

    def __init__(self) -> None:
        self._message_ids: set[str] = set()
        self._call_ids: set[str] = set()

    def add(self, event: StreamEvent) -> Sequence[AIMessage]:
        """Record an event. Return the messages with calls that a node returned and that must be announced.

        A message that a node returns together with the results of its calls is not announced, because the client gets
        both in a snapshot.
        """
        name, data = event["event"], event["data"]
        if name == "on_chain_end" and event["name"] == event["metadata"].get("langgraph_node"):
            returned = _messages_in(data.get("output"))
            results = {message.tool_call_id for message in returned if isinstance(message, ToolMessage)}
            return [message for message in _with_calls(returned) if self._record(message, results)]
        message_keys = {"on_chain_start": "input", "on_chat_model_stream": "chunk", "on_chat_model_end": "output"}
        for message in _messages_in(data.get(message_keys[name])) if name in message_keys else ():
            if isinstance(message, AIMessage):
                self._record(message)
        return []

    def _record(self, message: AIMessage, results: Collection[str] = ()) -> bool:
        """Return True if all ids of the message are new and none of its calls has a result."""
        calls = {call["id"] for call in message.tool_calls if call["id"]}
        is_new = message.id not in self._message_ids and calls.isdisjoint(self._call_ids | set(results))
        self._message_ids |= {message.id} if message.id else set()
        self._call_ids |= calls
        return is_new


def _announce(event: StreamEvent, message: AIMessage) -> Iterator[StreamEvent]:
    """Yield a node's message as events of a chat model, without usage, because no model of the graph made it."""
    _assign_ids(message)
    for piece in _split_chunk(_as_chunk(message)):
        yield _with_chunk(event, piece)
    output = message.model_copy(update={"usage_metadata": None})
    yield {**event, "event": "on_chat_model_end", "data": {"output": output}}


def _with_calls(messages: Sequence[object]) -> Iterator[AIMessage]:
    return (message for message in messages if isinstance(message, AIMessage) and message.tool_calls)


def _messages_in(value: object) -> Sequence[object]:
    if isinstance(value, BaseMessage):
        return [value]
    update = value.update if isinstance(value, Command) else value
    messages = update.get("messages") if isinstance(update, Mapping) else None
    return messages if isinstance(messages, list) else [messages]


def _repair(event: StreamEvent, *, is_streamed: bool) -> Iterator[StreamEvent]:
    """Yield the event in the form that the package expects. ``is_streamed``: its chat model has streamed chunks."""
    match event["event"]:
        case "on_chat_model_stream":
            yield from (_with_chunk(event, piece) for piece in _split_chunk(event["data"].get("chunk")))
            return
        case "on_chat_model_end" if not is_streamed:
            yield from (_with_chunk(event, piece) for piece in _split_chunk(_as_chunk(event["data"].get("output"))))
        case "on_tool_end":
            _assign_ids(event["data"].get("output"))
    yield event


def _with_chunk(event: StreamEvent, chunk: object) -> StreamEvent:
    return {**event, "event": "on_chat_model_stream", "data": {"chunk": chunk}}


def _as_chunk(message: object) -> AIMessageChunk | None:
    if not isinstance(message, AIMessage):
        return None
    calls = [
        tool_call_chunk(
            name=call["name"], args=to_json(call["args"], inf_nan_mode="strings").decode(), id=call["id"], index=index
        )
        for index, call in enumerate(message.tool_calls)
    ]
    return AIMessageChunk(content=message.text, id=message.id, tool_call_chunks=calls)


def _split_chunk(chunk: object) -> Iterator[object]:
    """Yield the chunk in pieces, each with text or with either the name or the arguments of one call."""
    calls = chunk.tool_call_chunks if isinstance(chunk, AIMessageChunk) else []
    if not isinstance(chunk, AIMessageChunk) or (len(calls) <= 1 and not any(map(_has_name_and_arguments, calls))):
        if chunk is not None:
            yield chunk
        return
    # Only one piece has the usage, so that it is counted once. The stop reason is dropped: it would hide the calls.
    usage = chunk.usage_metadata
    if chunk.text:
        yield AIMessageChunk(content=chunk.text, id=chunk.id, usage_metadata=usage)
        usage = None
    for call in calls:
        for part in _split_call(call):
            yield AIMessageChunk(content="", id=chunk.id, tool_call_chunks=[part], usage_metadata=usage)
            usage = None


def _split_call(call: ToolCallChunk) -> Iterator[ToolCallChunk]:
    if not _has_name_and_arguments(call):
        yield call
        return
    yield tool_call_chunk(name=call["name"], args="", id=call["id"], index=call["index"])
    yield tool_call_chunk(name=None, args=call["args"], id=None, index=call["index"])


def _has_name_and_arguments(call: ToolCallChunk) -> bool:
    return bool(call["name"] and call["args"])


def _assign_ids(output: object) -> None:
    """The state gets the same objects, and its reducer assigns an id only to a message that has none."""
    for message in _messages_in(output):
        if isinstance(message, AIMessage | ToolMessage) and message.id is None:
            message.id = str(uuid4())


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
        deferred = [message for message in input.messages if waiting.is_deferred(message)]
        answers: Sequence[ResumeEntry]
        if waiting.is_unfinished and input.resume:
            answers = input.resume  # the graph has them, and continues with the node that was interrupted by a call
            adapter._build_command_from_agui_resume = continue_graph  # noqa: SLF001 - a documented hook
        else:
            named = {interrupt.id for interrupt in waiting.questions}
            answers = join_answers(filter_answers(input.resume or (), named, ctx), waiting.interrupts)
        messages = [message for message in input.messages if not waiting.is_deferred(message)]
        own = input.model_copy(update={"resume": list(answers) or None, "messages": messages})
        request = own_input(own, ctx, waiting.known_ids)
        async with maybe_aclosing(check_events(end_calls(adapter.run(request)), ctx)) as events:
            async for event in events:
                shown = await self._with_questions(adapter, event, ctx)
                yield with_new_messages(shown, deferred) if deferred else shown

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
        return PendingInterrupts(interrupts, questions, known_ids, bool(state.next) and not interrupts)

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
    """Change results of client tools, too. The package itself adds only messages under new ids."""
    client_tools = {tool.name for tool in input.tools or ()}
    calls = {
        call["id"] for message in _with_calls(messages) for call in message.tool_calls if call["name"] in client_tools
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

    It ``is_unfinished`` if a node has not ended and waits for no interrupt.
    """

    interrupts: Sequence[Interrupt] = ()
    questions: Sequence[Interrupt] = ()
    known_ids: frozenset[str] = frozenset()
    is_unfinished: bool = False

    def is_deferred(self, message: Message) -> bool:
        """Return True for a user message that must wait until the interrupts are answered.

        The graph does not have it yet. It would stand between a call and its result, which models reject.
        """
        return bool(self.interrupts) and isinstance(message, UserMessage) and message.id not in self.known_ids


def with_new_messages(event: Item, deferred: Sequence[Message]) -> Item:
    """Append deferred messages to a snapshot, because a client deletes messages that a snapshot lacks."""
    if not isinstance(event, MessagesSnapshotEvent):
        return event
    return event.model_copy(update={"messages": [*event.messages, *deferred]})


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
