"""A graph whose events ``ag-ui-langgraph`` translates without loss.

Rule: only what the package (0.0.47) would drop or contradict is changed, in the form in which it expects it:

- A message that a model gives at once, without streaming, becomes one piece of a stream. It would reach clients only in
  the snapshot at the end, and a call of a client's tool would not count as pending.
- A piece with a call's name and arguments, or with several calls, becomes a piece for each. Only the name of the first
  call would be used.
- A tool's message has its id before it is announced. Clients would get another id than the snapshot has, and send the
  message back behind the answer to it, which models refuse.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.runnables.schema import StreamEvent
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic_core import to_json

from app.closing import closing

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
        async with closing(self._graph.astream_events(**how)) as events:
            async for event in events:
                if event["event"] == "on_chat_model_stream":
                    streamed.add(event["run_id"])
                for mended in _mended(event, alone=event["run_id"] not in streamed):
                    yield mended


def _mended(event: StreamEvent, *, alone: bool) -> Iterator[StreamEvent]:
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
    update = output.update if isinstance(output, Command) else None
    inside = update.get("messages") if isinstance(update, Mapping) else None
    for message in [output, *(inside if isinstance(inside, list) else [])]:
        if isinstance(message, ToolMessage) and message.id is None:
            message.id = str(uuid4())
