"""Features of LangGraph: states, checkpoints, and the events that the package alone would lose."""

import operator
from collections.abc import Callable, Sequence
from typing import Annotated

import pytest
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    FileSource,
    FunctionCall,
    ImageInputContent,
    InputContentDataSource,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunFinishedEvent,
    StateSnapshotEvent,
    TextInputContent,
    TextMessageContentEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages import ToolMessage as LangChainToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from msgspec.structs import replace

from agui_container.agents.frameworks import framework_agent
from agui_container.agents.frameworks.langgraph_events import Graph
from agui_container.ports import Agent, Caller, Item
from agui_container.ports.files import PROVIDER, File
from agui_core.transcript import Transcript
from tests.agents.frameworks import langgraph_agents
from tests.agents.frameworks.langgraph_agents import chain
from tests.agents.frameworks.scripted_model import ARGUMENTS
from tests.contexts import client_tool, collect_items, of_type, run_context, run_input, types

pytestmark = pytest.mark.packages


def load_framework_agent(source: object) -> Agent:
    agent = framework_agent(source, "mine:agent")
    assert agent
    return agent


async def items(source: object, request: RunAgentInput, owner: str = "anonymous") -> list[Item]:
    ctx = replace(run_context(), caller=Caller(owner=owner, request_id="r"))
    return await collect_items(load_framework_agent(source).run(request, ctx))


def graph_with_messages(*messages: AIMessage) -> object:
    async def node(state: MessagesState) -> dict[str, object]:
        model = FakeMessagesListChatModel(responses=list(messages))
        return {"messages": [await model.ainvoke(state["messages"])]}

    return chain(node).compile()


def call(number: int) -> dict[str, object]:
    return {"name": "pick", "args": {"number": number}, "id": f"call-{number}"}


async def test_the_state_comes_in_and_goes_out() -> None:
    request = run_input("say hi").model_copy(update={"state": {"visits": 4}})
    snapshots = of_type(await items(langgraph_agents.agent, request), StateSnapshotEvent)
    assert snapshots[-1].snapshot["visits"] == 5
    assert request.state == {"visits": 4}


class Visits(MessagesState):
    name: str
    visited: Annotated[list[str], operator.add]


def visit(state: Visits) -> dict[str, object]:
    return {"messages": [AIMessage("Done.")], "visited": [state["name"]]}


async def test_a_state_that_the_client_sends_back_is_not_added_to_itself() -> None:
    builder = StateGraph(Visits)
    builder.add_node("visit", visit)
    graph = builder.add_edge(START, "visit").compile(checkpointer=InMemorySaver())
    request, lengths = run_input("hi").model_copy(update={"state": {"name": "Ada"}}), []
    for _ in range(3):
        snapshots = [event.snapshot for event in of_type(await items(graph, request), StateSnapshotEvent)]
        assert all(snapshot["name"] == "Ada" for snapshot in snapshots)
        lengths.append(len(snapshots[-1]["visited"]))
        request = request.model_copy(update={"state": snapshots[-1]})
    assert lengths == [1, 2, 3]


async def test_a_result_of_parts_reaches_the_graph_as_blocks_and_the_client_as_it_was() -> None:
    read: list[object] = []

    async def node(state: MessagesState) -> dict[str, object]:
        read.append(state["messages"][-1].content)
        return {"messages": [AIMessage("A cat.")]}

    picture = ImageInputContent(source=InputContentDataSource(value="QUJD", mime_type="image/png"))
    asked = AssistantMessage(id="a", tool_calls=[ToolCall(id="c", function=FunctionCall(name="draw", arguments="{}"))])
    result = ToolMessage(id="t", tool_call_id="c", content=[TextInputContent(text="A drawing:"), picture])
    done = await items(chain(node).compile(), run_input("draw", asked, result, tools=[client_tool("draw")]))
    assert read == [[{"type": "text", "text": "A drawing:"}, picture.model_dump(exclude_none=True)]]
    assert result in of_type(done, MessagesSnapshotEvent)[-1].messages


async def test_events_do_not_repeat_the_state_of_the_graph() -> None:
    assert "RAW" not in types(await items(langgraph_agents.agent, run_input("use roll")))


async def test_calls_that_a_model_makes_at_once_are_all_streamed() -> None:
    done = await items(graph_with_messages(AIMessage("Two.", tool_calls=[call(1), call(2)])), run_input("hi"))
    assert [event.delta for event in of_type(done, TextMessageContentEvent)] == ["Two."]
    assert [event.tool_call_id for event in of_type(done, ToolCallStartEvent)] == ["call-1", "call-2"]
    arguments = [(event.tool_call_id, event.delta) for event in of_type(done, ToolCallArgsEvent)]
    assert arguments == [("call-1", '{"number":1}'), ("call-2", '{"number":2}')]


async def test_usage_is_counted_once() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    message = AIMessage("Two.", tool_calls=[call(1), call(2)], usage_metadata=usage)
    (end,) = of_type(await items(graph_with_messages(message), run_input("hi")), RunFinishedEvent)
    assert [(entry.input_tokens, entry.output_tokens) for entry in end.usage or ()] == [(3, 4)]


async def test_a_tools_message_has_one_id() -> None:
    done = await items(langgraph_agents.agent, run_input("use roll"))
    (result,) = of_type(done, ToolCallResultEvent)
    snapshot = of_type(done, MessagesSnapshotEvent)[-1]
    assert [message.id for message in snapshot.messages if message.role == "tool"] == [result.message_id]


async def test_a_late_result_of_a_client_replaces_what_stood_in_for_it() -> None:
    graph = langgraph_agents.agent.copy({"checkpointer": InMemorySaver()})
    function = FunctionCall(name="pick", arguments="{}")
    asked = ("hi", AssistantMessage(id="a", tool_calls=[ToolCall(id="call-1", function=function)]))
    tools = [client_tool("pick")]
    await items(graph, run_input(*asked, "say hi", tools=tools))
    late = ToolMessage(id="t", tool_call_id="call-1", content="the red one")
    done = await items(graph, run_input(*asked, "say hi", late, "count", tools=tools))
    snapshot = of_type(done, MessagesSnapshotEvent)[-1]
    assert [message.content for message in snapshot.messages if message.role == "tool"] == ["the red one"]
    assert [event.delta for event in of_type(done, TextMessageContentEvent)] == ["3 messages"]


@tool
async def pick(number: int) -> str:
    """Pick a number."""
    return f"picked {number}"


def update_of(message: AIMessage) -> object:
    return {"messages": [message]}


def command_of(message: AIMessage) -> object:
    return Command(update={"messages": [message]})


def graph_with_calls(returned: Callable[[AIMessage], object] = update_of, message_id: str | None = None) -> Graph:
    """Return a graph whose first node returns calls without a chat model. The graph runs them and ends with "Done."."""

    def call_tools(_: MessagesState) -> object:
        return returned(AIMessage("Two.", tool_calls=[call(1), call(2)], id=message_id))

    def finish(_: MessagesState) -> dict[str, object]:
        return {"messages": [AIMessage("Done.")]}

    return chain(call_tools, ToolNode([pick]), finish).compile()


def transcript(messages: Sequence[Message]) -> list[tuple[str, object]]:
    return [(it.role, [call.id for call in getattr(it, "tool_calls", None) or ()] or it.content) for it in messages]


CALLED = [
    ("user", "hi"),
    ("assistant", ["call-1", "call-2"]),
    ("tool", "picked 1"),
    ("tool", "picked 2"),
    ("assistant", "Done."),
]


@pytest.mark.parametrize(
    "graph",
    [graph_with_calls(), graph_with_calls(message_id="given"), graph_with_calls(command_of)],
    ids=["an update", "an update with an id", "a command"],
)
async def test_calls_that_a_node_returns_stand_before_their_results(graph: Graph) -> None:
    request = run_input("hi")
    done = await items(graph, request)
    events = [event for event in done if isinstance(event, BaseEvent)]
    conversation = Transcript(request.messages)
    for event in events:
        conversation.feed(event)
    assert transcript(conversation.messages) == CALLED
    assert conversation.messages == of_type(done, MessagesSnapshotEvent)[-1].messages
    assert [event.tool_call_id for event in of_type(done, ToolCallStartEvent)] == ["call-1", "call-2"]
    assert [event.delta for event in of_type(done, TextMessageContentEvent)] == ["Two."]


async def test_calls_of_the_history_are_not_announced_again() -> None:
    def repeat(state: MessagesState) -> dict[str, object]:
        return {"messages": [*state["messages"], AIMessage("Done.")]}

    function = FunctionCall(name="pick", arguments='{"number": 1}')
    history = (
        AssistantMessage(id="a", tool_calls=[ToolCall(id="call-1", function=function)]),
        ToolMessage(id="t", tool_call_id="call-1", content="picked 1"),
    )
    done = await items(chain(repeat).compile(), run_input("hi", *history, "and?"))
    assert of_type(done, ToolCallStartEvent) == []


async def test_calls_that_come_with_their_results_are_in_the_snapshot_alone() -> None:
    def both(_: MessagesState) -> dict[str, object]:
        result = LangChainToolMessage("picked 1", tool_call_id="call-1")
        return {"messages": [AIMessage("One.", tool_calls=[call(1)]), result]}

    done = await items(chain(both).compile(), run_input("hi"))
    assert of_type(done, ToolCallStartEvent) == []
    (*_, snapshot) = of_type(done, MessagesSnapshotEvent)
    assert transcript(snapshot.messages) == [("user", "hi"), ("assistant", ["call-1"]), ("tool", "picked 1")]


async def test_a_call_of_a_clients_tool_that_a_node_returns_reaches_the_client() -> None:
    def ask(_: MessagesState) -> dict[str, object]:
        return {"messages": [AIMessage("", tool_calls=[call(1)])]}

    done = await items(chain(ask).compile(), run_input("hi", tools=[client_tool("pick")]))
    assert [(it.tool_call_id, it.tool_call_name) for it in of_type(done, ToolCallStartEvent)] == [("call-1", "pick")]


async def test_a_call_that_a_model_streams_in_one_piece_has_its_arguments() -> None:
    done = await items(langgraph_agents.agent, run_input("use roll"))
    assert [event.delta for event in of_type(done, ToolCallArgsEvent)] == [ARGUMENTS]


async def test_a_graph_gets_the_bytes_of_a_file_and_the_client_keeps_the_handle() -> None:
    read: list[object] = []

    def note(state: MessagesState) -> dict[str, object]:
        read.extend(state["messages"][-1].content)
        return {}

    async def file_of(_: str) -> File:
        return File(id="f", name="a.png", mime_type="image/png", data=b"ABC")

    graph = StateGraph(MessagesState).add_node("note", note).add_edge(START, "note").compile()
    picture = ImageInputContent(source=FileSource(value="f", provider=PROVIDER))
    question = UserMessage(id="u", content=[picture])
    request = run_input("").model_copy(update={"messages": [question]})
    events = await collect_items(load_framework_agent(graph).run(request, replace(run_context(), file=file_of)))
    assert read == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]
    assert of_type(events, MessagesSnapshotEvent)[-1].messages == [question]
