"""What is particular to LangGraph: states, checkpoints, and the events that the package alone would lose."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from ag_ui.core import (
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from app.agents.frameworks import framework_agent
from app.agents.frameworks.langgraph_events import _pieces
from app.ports import Agent, Caller, Item
from tests.contexts import collected, of_type, run_context, run_input, types
from tests.frameworks import langgraph_agents


def served(source: object) -> Agent:
    agent = framework_agent(source, "mine:agent")
    assert agent
    return agent


async def items(source: object, request: RunAgentInput, owner: str = "anonymous") -> list[Item]:
    ctx = replace(run_context(), caller=Caller(owner=owner, request_id="r"))
    return await collected(served(source).run(request, ctx))


def saying(*messages: AIMessage) -> object:
    """A graph of one node, whose model says each message at once."""
    graph = StateGraph(MessagesState)

    async def node(state: MessagesState) -> dict[str, object]:
        model = FakeMessagesListChatModel(responses=list(messages))
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


def call(number: int) -> dict[str, object]:
    return {"name": "pick", "args": {"number": number}, "id": f"call-{number}"}


async def test_the_state_comes_in_and_goes_out() -> None:
    request = run_input("say hi").model_copy(update={"state": {"visits": 4}})
    snapshots = of_type(await items(langgraph_agents.agent, request), StateSnapshotEvent)
    assert snapshots[-1].snapshot["visits"] == 5
    assert request.state == {"visits": 4}


async def test_without_a_checkpointer_nothing_is_kept() -> None:
    for _ in range(2):
        said = of_type(await items(langgraph_agents.agent, run_input("count")), TextMessageContentEvent)
        assert [event.delta for event in said] == ["1 messages"]


async def test_a_checkpoint_belongs_to_an_owner() -> None:
    graph = langgraph_agents.graph.compile(checkpointer=InMemorySaver())
    first = run_input("say hi", "count")
    for owner, expected in (("red", "2 messages"), ("blue", "2 messages"), ("red", "3 messages")):
        request = first if expected == "2 messages" else run_input("say hi", "count", "count")
        said = of_type(await items(graph, request, owner), TextMessageContentEvent)
        assert [event.delta for event in said] == [expected]


async def test_events_do_not_repeat_the_state_of_the_graph() -> None:
    assert "RAW" not in types(await items(langgraph_agents.agent, run_input("use roll")))


async def test_what_a_model_says_at_once_is_streamed() -> None:
    said = of_type(await items(saying(AIMessage("Hello.")), run_input("hi")), TextMessageContentEvent)
    assert [event.delta for event in said] == ["Hello."]


async def test_calls_that_a_model_makes_at_once_are_all_streamed() -> None:
    done = await items(saying(AIMessage("Two.", tool_calls=[call(1), call(2)])), run_input("hi"))
    assert [event.delta for event in of_type(done, TextMessageContentEvent)] == ["Two."]
    assert [event.tool_call_id for event in of_type(done, ToolCallStartEvent)] == ["call-1", "call-2"]
    arguments = [(event.tool_call_id, event.delta) for event in of_type(done, ToolCallArgsEvent)]
    assert arguments == [("call-1", '{"number":1}'), ("call-2", '{"number":2}')]


async def test_usage_is_counted_once() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    message = AIMessage("Two.", tool_calls=[call(1), call(2)], usage_metadata=usage)
    (end,) = of_type(await items(saying(message), run_input("hi")), RunFinishedEvent)
    assert [(entry.input_tokens, entry.output_tokens) for entry in end.usage or ()] == [(3, 4)]


async def test_a_tools_message_has_one_id() -> None:
    done = await items(langgraph_agents.agent, run_input("use roll"))
    (result,) = of_type(done, ToolCallResultEvent)
    snapshot = of_type(done, MessagesSnapshotEvent)[-1]
    assert [message.id for message in snapshot.messages if message.role == "tool"] == [result.message_id]


CALLS = [tool_call_chunk(name=name, args="{}", id=name, index=at) for at, name in enumerate(["a", "b"])]


@pytest.mark.parametrize(
    ("chunk", "pieces"),
    [
        (AIMessageChunk(content="text"), [("text", None, None)]),
        (AIMessageChunk(content="", tool_call_chunks=[{**CALLS[0], "args": ""}]), [("", "a", "")]),
        (AIMessageChunk(content="", tool_call_chunks=[CALLS[0]]), [("", "a", ""), ("", None, "{}")]),
        (
            AIMessageChunk(content="text", tool_call_chunks=CALLS),
            [("text", None, None), ("", "a", ""), ("", None, "{}"), ("", "b", ""), ("", None, "{}")],
        ),
    ],
)
def test_a_piece_holds_one_thing(chunk: AIMessageChunk, pieces: Sequence[tuple[str, str | None, str | None]]) -> None:
    held = []
    for piece in _pieces(chunk):
        assert isinstance(piece, AIMessageChunk)
        part = piece.tool_call_chunks[0] if piece.tool_call_chunks else None
        held.append((piece.text, part and part["name"], part and part["args"]))
    assert held == pieces
