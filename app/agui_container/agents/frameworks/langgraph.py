"""A graph whose events ``ag-ui-langgraph`` translates without loss.

Rule: only what the package (0.0.47) would drop or contradict is changed, in the form in which it expects it:

- A message that a model gives at once, without streaming, becomes one piece of a stream. It would reach clients only in
  the snapshot at the end, and a call of a client's tool would not count as pending.
- A piece with a call's name and arguments, or with several calls, becomes a piece for each. Only the name of the first
  call would be used.
- A message with calls that a node returns without a chat model becomes such a stream as well. The package would
  announce its calls when their results are there, and without their message. Clients would put the message behind the
  results, and models refuse that order.
- A tool's message has its id before it is announced. Clients would get another id than the snapshot has, and send the
  message back behind the answer to it, which models refuse.

A compiled LangGraph graph, through ``ag-ui-langgraph``.

Rule: a fresh adapter for every run, because the package keeps the run's state in it. A graph without a checkpointer
gets one for the length of the run, because the package asks for the thread's state; its history is what clients send.
What a checkpoint waits for is looked up before the run, so that each answer goes to the interrupt that it names.
"""

import logging
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ag_ui.core import Interrupt, Message, MessagesSnapshotEvent, ResumeEntry, RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from ag_ui_langgraph.interrupts import DEFAULT_RESUME_SENTINEL_CANCELLED
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.runnables.schema import StreamEvent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from msgspec import Struct
from pydantic_core import to_json

from agui_container.agents.frameworks.translation import (
    awaits_client,
    check_events,
    filter_answers,
    own_input,
    thread_id_for,
)
from agui_container.ports import Agent, Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.aclosing import maybe_aclosing

Graph = CompiledStateGraph[Any, Any, Any, Any]


class LosslessGraph:
    """The graph, with its events mended. Everything else is the graph's own."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> object:
        """What the graph has."""
        return getattr(self._graph, name)

    def get_config_jsonschema(self) -> dict[str, Any]:
        """What the graph can be configured with, which LangGraph 1 warns of when it is asked for it like this."""
        return self._graph.get_context_jsonschema() or {}

    async def astream_events(self, **how: Any) -> AsyncGenerator[StreamEvent, None]:  # noqa: ANN401 - the graph's own
        """The graph's events."""
        streamed: set[str] = set()
        seen = SeenMessages()
        async with maybe_aclosing(self._graph.astream_events(**how)) as events:
            async for event in events:
                if event["event"] == "on_chat_model_stream":
                    streamed.add(event["run_id"])
                for message in seen.add(event):
                    for announcement in _announced(event, message):
                        yield announcement
                for mended in _repair(event, alone=event["run_id"] not in streamed):
                    yield mended


class SeenMessages:
    """Assistant messages that the client has, or gets by a chat model's events."""

    def __init__(self) -> None:
        self._message_ids: set[str] = set()
        self._call_ids: set[str] = set()

    def add(self, event: StreamEvent) -> Sequence[AIMessage]:
        """Take note of an event. Returns the messages with calls that a node has returned and nothing has announced.

        A message whose results a node returns with it needs no announcement: both reach the client by a snapshot.
        """
        name, data = event["event"], event["data"]
        if name == "on_chain_end" and event["name"] == event["metadata"].get("langgraph_node"):
            returned = _messages_in(data.get("output"))
            results = {message.tool_call_id for message in returned if isinstance(message, ToolMessage)}
            return [message for message in _with_calls(returned) if self._note(message, results)]
        noted = {"on_chain_start": "input", "on_chat_model_stream": "chunk", "on_chat_model_end": "output"}
        for message in _messages_in(data.get(noted[name])) if name in noted else ():
            if isinstance(message, AIMessage):
                self._note(message)
        return []

    def _note(self, message: AIMessage, results: Collection[str] = ()) -> bool:
        """Note the ids of a message. Returns whether all of them are new and no call has a result."""
        calls = {call["id"] for call in message.tool_calls if call["id"]}
        is_new = message.id not in self._message_ids and calls.isdisjoint(self._call_ids | set(results))
        self._message_ids |= {message.id} if message.id else set()
        self._call_ids |= calls
        return is_new


def _announced(event: StreamEvent, message: AIMessage) -> Iterator[StreamEvent]:
    """A node's message as events of a chat model. Usage is left out, because no model of the graph has counted it."""
    _identify(message)
    for piece in _pieces(_whole(message)):
        yield _with_chunk(event, piece)
    output = message.model_copy(update={"usage_metadata": None})
    yield {**event, "event": "on_chat_model_end", "data": {"output": output}}


def _with_calls(messages: Sequence[object]) -> Iterator[AIMessage]:
    return (message for message in messages if isinstance(message, AIMessage) and message.tool_calls)


def _messages_in(value: object) -> Sequence[object]:
    """The messages of a value that a graph's event carries: one message, a state, or an update of a state."""
    if isinstance(value, BaseMessage):
        return [value]
    update = value.update if isinstance(value, Command) else value
    messages = update.get("messages") if isinstance(update, Mapping) else None
    return messages if isinstance(messages, list) else [messages]


def _repair(event: StreamEvent, *, alone: bool) -> Iterator[StreamEvent]:
    """The event as the package needs it. ``alone``: nothing of this run has been streamed."""
    match event["event"]:
        case "on_chat_model_stream":
            yield from (_with_chunk(event, piece) for piece in _pieces(event["data"].get("chunk")))
            return
        case "on_chat_model_end" if alone:
            yield from (_with_chunk(event, piece) for piece in _pieces(_whole(event["data"].get("output"))))
        case "on_tool_end":
            _identify(event["data"].get("output"))
    yield event


def _with_chunk(event: StreamEvent, chunk: object) -> StreamEvent:
    return {**event, "event": "on_chat_model_stream", "data": {"chunk": chunk}}


def _whole(message: object) -> AIMessageChunk | None:
    if not isinstance(message, AIMessage):
        return None
    calls = [
        tool_call_chunk(name=call["name"], args=to_json(call["args"]).decode(), id=call["id"], index=index)
        for index, call in enumerate(message.tool_calls)
    ]
    return AIMessageChunk(content=message.text, id=message.id, tool_call_chunks=calls)


def _pieces(chunk: object) -> Iterator[object]:
    calls = chunk.tool_call_chunks if isinstance(chunk, AIMessageChunk) else []
    if not isinstance(chunk, AIMessageChunk) or (len(calls) <= 1 and not any(map(_named_with_arguments, calls))):
        if chunk is not None:
            yield chunk
        return
    # What the provider counted is counted once; why it stopped would hide the calls.
    usage = chunk.usage_metadata
    if chunk.text:
        yield AIMessageChunk(content=chunk.text, id=chunk.id, usage_metadata=usage)
        usage = None
    for call in calls:
        for part in _parts(call):
            yield AIMessageChunk(content="", id=chunk.id, tool_call_chunks=[part], usage_metadata=usage)
            usage = None


def _parts(call: ToolCallChunk) -> Iterator[ToolCallChunk]:
    if not _named_with_arguments(call):
        yield call
        return
    yield tool_call_chunk(name=call["name"], args="", id=call["id"], index=call["index"])
    yield tool_call_chunk(name=None, args=call["args"], id=None, index=call["index"])


def _named_with_arguments(call: ToolCallChunk) -> bool:
    return bool(call["name"] and call["args"])


def _identify(output: object) -> None:
    """The object is the one that goes into the graph's state, whose reducer gives an id only where there is none."""
    for message in _messages_in(output):
        if isinstance(message, AIMessage | ToolMessage) and message.id is None:
            message.id = str(uuid4())


HOOKS = ("_interrupts_to_agui", "_build_command_from_agui_resume")
"""How a user's own adapter names interrupts and gives their answers. Who does either has ids of its own."""

logger = logging.getLogger(__name__)


def wrap(source: object, name: str) -> Agent:
    """Serve a compiled graph, or a user's ``LangGraphAgent`` with its own settings."""
    if isinstance(source, LangGraphAgent):
        return GraphAgent(source)
    # Interrupts as AG-UI 1.0 has them. RAW events would repeat the graph's whole state beside every event.
    return GraphAgent(LangGraphAgent(name=name, graph=source, emit_interrupt_outcome=True, emit_raw_events=False))


class GraphAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` and ``ports.Rememberer``.

    Nodes and tools find the run's context in ``config["configurable"]["ctx"]``.
    """

    template: LangGraphAgent

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the graph."""
        check_form(input)
        if awaits_client(input):
            return
        adapter = self._adapter(ctx)
        waiting = await self._pending_interrupts(adapter, thread_id_for(ctx.caller.owner, input.thread_id))
        later = [message for message in input.messages if waiting.is_unheard(message)]
        answers = filter_answers(input.resume or (), {interrupt.id for interrupt in waiting.interrupts}, ctx)
        said = [message for message in input.messages if not waiting.is_unheard(message)]
        if input.resume and not answers and not waiting.interrupts and {each.id for each in said} <= waiting.heard:
            return  # answered already, and nothing new is said: the graph would begin again
        request = own_input(input.model_copy(update={"resume": answers or None, "messages": said}), ctx, waiting.heard)
        async with maybe_aclosing(check_events(adapter.run(request), ctx)) as events:
            async for event in events:
                yield with_new_messages(event, later) if later else event

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """Delete its checkpoints. Raises what the checkpointer raises, unless that cannot do it at all."""
        if self.template.graph.checkpointer:
            try:
                await self.template.graph.checkpointer.adelete_thread(thread_id_for(owner, thread_id))
            except NotImplementedError:
                logger.warning("thread=<%s> | its checkpoints stay: the checkpointer cannot delete a thread", thread_id)

    async def _pending_interrupts(self, adapter: LangGraphAgent, thread: str) -> "PendingInterrupts":
        if not self.template.graph.checkpointer:
            return PendingInterrupts()
        config = {"configurable": {**adapter.config["configurable"], "thread_id": thread}}
        state = await adapter.graph.aget_state(config)
        interrupts = adapter._interrupts_to_agui(adapter._collect_interrupts(state.tasks))  # noqa: SLF001 - as it asks
        return PendingInterrupts(interrupts, frozenset(str(message.id) for message in state.values.get("messages", ())))

    def _adapter(self, ctx: RunContext) -> LangGraphAgent:
        adapter = self.template.clone()
        adapter.config = {**adapter.config, "configurable": {**adapter.config.get("configurable", {}), "ctx": ctx}}
        graph = adapter.graph
        adapter.graph = LosslessGraph(graph if graph.checkpointer else graph.copy({"checkpointer": InMemorySaver()}))
        if all(getattr(type(adapter), hook) is getattr(LangGraphAgent, hook) for hook in HOOKS):
            adapter._build_command_from_agui_resume = answers_by_interrupt  # noqa: SLF001 - made to be replaced
        return adapter


class PendingInterrupts(Struct, frozen=True):
    """What a checkpoint waits for.

    Attributes:
        interrupts: those that are open.
        heard: ids of the messages that the graph has.
    """

    interrupts: Sequence[Interrupt] = ()
    heard: frozenset[str] = frozenset()

    def is_unheard(self, message: Message) -> bool:
        """Whether a user has said this meanwhile. It would come between a call and its result, which models refuse."""
        return bool(self.interrupts) and isinstance(message, UserMessage) and message.id not in self.heard


def with_new_messages(event: Item, later: Sequence[Message]) -> Item:
    """A snapshot with what the graph has not heard yet, because a client takes what is missing there for deleted."""
    if not isinstance(event, MessagesSnapshotEvent):
        return event
    return event.model_copy(update={"messages": [*event.messages, *later]})


def answers_by_interrupt(entries: Sequence[ResumeEntry], **_: object) -> Command[str]:
    """Each answer to the interrupt that it names. The package would answer whichever is open, and several with none."""
    return Command(resume={entry.interrupt_id: resume_value(entry) for entry in entries})


def resume_value(entry: ResumeEntry) -> object:
    """What ``interrupt()`` gives: the payload, or the package's own mark of an answer that was refused."""
    if entry.status == "resolved":
        return entry.payload
    return {DEFAULT_RESUME_SENTINEL_CANCELLED: True, "interrupt_id": entry.interrupt_id}


def check_form(input: RunAgentInput) -> None:
    """Raises ``AppError`` VALIDATION_ERROR for what the package takes for granted to be an object."""
    for field, value in (("state", input.state), ("forwardedProps", input.forwarded_props)):
        if value and not isinstance(value, dict):
            raise AppError(ErrorCode.VALIDATION_ERROR, f"{field}: must be an object for this agent.")
