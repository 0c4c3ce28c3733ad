"""Proxy of a LangGraph graph for ``ag-ui-langgraph`` (0.0.47), with the input and the events that lose nothing.

Rules:
- State that a client sends back as it got it is no input. A reducer such as ``operator.add`` would add it to itself.
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

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ag_ui_langgraph.utils import make_json_safe
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.runnables.schema import StreamEvent
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic_core import to_json

from agui_container.ports.agent import maybe_aclosing

Graph = CompiledStateGraph[Any, Any, Any, Any]


class LosslessGraph:
    """Proxy of a graph that repairs its input and events. Every other attribute is the graph's own.

    Attributes:
        known: the state of the thread before the run.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.known: Mapping[str, object] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._graph, name)

    def get_config_jsonschema(self) -> dict[str, Any]:
        """The graph's own method is deprecated in LangGraph 1."""
        return self._graph.get_context_jsonschema() or {}

    async def astream_events(self, **options: Any) -> AsyncGenerator[StreamEvent, None]:  # noqa: ANN401 - the graph's own
        streamed: set[str] = set()
        seen = SeenMessages()
        options["input"] = changed_keys(options["input"], self.known)
        async with maybe_aclosing(self._graph.astream_events(**options)) as events:
            async for event in events:
                if event["event"] == "on_chat_model_stream":
                    streamed.add(event["run_id"])
                for message in seen.add(event):
                    for announcement in _announce(event, message):
                        yield announcement
                for repaired in _repair(event, is_streamed=event["run_id"] in streamed):
                    yield repaired


def changed_keys(sent: object, known: Mapping[str, object]) -> object:
    if not isinstance(sent, Mapping):
        return sent
    return {key: value for key, value in sent.items() if key not in known or value != make_json_safe(known[key])}


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
            return [message for message in with_calls(returned) if self._record(message, results)]
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


def with_calls(messages: Sequence[object]) -> Iterator[AIMessage]:
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
