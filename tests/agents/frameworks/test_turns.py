"""Turns of frameworks: each call of a node or of a model is run once, beside questions and in parallel nodes."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import pytest
from ag_ui.core import BaseEvent, RunAgentInput, RunErrorEvent, ToolCallResultEvent, ToolMessage
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from agui_container import langchain_tools
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.main import build_service
from agui_container.settings import Settings
from agui_container.testing import EVENT, user_input
from tests.agents.conftest import Serve
from tests.agents.frameworks import langgraph_agents, pydantic_ai_agents
from tests.agents.frameworks.langgraph_agents import beside, chain
from tests.agents.frameworks.table import python_of
from tests.agents.turns import (
    EFFECTS,
    POLICY,
    TOOLS,
    WAYS,
    Ask,
    Client,
    answer_all,
    answer_when_forgotten,
    asks,
    check,
    cut_off,
    entry,
    expected_effects,
    expected_questions,
)
from tests.agents.turns_of_models import CALLS, EFFECTS_SAID, RESULTS_SAID, command
from tests.contexts import of_type
from tests.engine.doubles import caller, eventually
from tests.server.sockets.process import serving
from tests.sse import SseFrame, frames_of, http_client, stream_frames

pytestmark = pytest.mark.packages

STORES = ("memory", "sqlite", "postgres")


def call_node(name: str, amount: int) -> object:
    async def node(_: MessagesState, config: RunnableConfig) -> dict[str, object]:
        said = await config["configurable"]["ctx"].call_tool(name, {"amount": amount})
        return {"messages": [AIMessage(str(said))]}

    return node


def ask_node(_: MessagesState) -> dict[str, object]:
    return {"messages": [AIMessage(f"colour {interrupt('Which colour?')}")]}


async def ask_and_pay(_: MessagesState, config: RunnableConfig) -> dict[str, object]:
    colour = interrupt("Which colour?")
    said = await config["configurable"]["ctx"].call_tool("pay", {"amount": 1})
    return {"messages": [AIMessage(f"{colour}, {said}")]}


def with_checkpoints(graph: StateGraph[Any, Any, Any, Any]) -> object:
    return graph.compile(checkpointer=InMemorySaver())


def without_checkpoints(graph: StateGraph[Any, Any, Any, Any]) -> object:
    return graph.compile()


Compile = Callable[[StateGraph[Any, Any, Any, Any]], object]
either = pytest.mark.parametrize("compiled", [with_checkpoints, without_checkpoints], ids=["checkpointer", "none"])


@either
@pytest.mark.parametrize("way", [way for way in WAYS if way not in {"denied", "cancelled"}])
async def test_calls_of_parallel_nodes_are_run_once(serve: Serve, way: str, compiled: Compile) -> None:
    client = await serve(compiled(beside(call_node("pay", 1), call_node("refund", 2))))
    await client.send("go")
    await answer_all(client, way)
    assert client.outcome == "success"
    assert sorted(EFFECTS) == (["pay 9", "refund 9"] if way == "edited" else ["pay 1", "refund 2"])
    assert len(client.questions) == 2


async def test_a_denial_in_a_node_reads_as_the_denial_and_not_as_a_failure(serve: Serve) -> None:
    client = await serve(with_checkpoints(chain(call_node("pay", 1))))
    await client.send("go")
    await answer_all(client, "denied")
    assert (client.outcome, EFFECTS) == ("AGENT_ERROR", [])
    assert [event.message for event in client.events if isinstance(event, RunErrorEvent)] == [
        "the user denied this call."
    ]


@pytest.mark.parametrize("way", ["together", "one by one", "edited", "resent"])
@pytest.mark.parametrize("ids", [("c1", "c2"), ("c", "c")], ids=["two ids", "one id"])
@either
async def test_calls_that_a_node_names_without_a_model_are_run_once(
    serve: Serve, way: str, ids: tuple[str, str], compiled: Compile
) -> None:
    calls = [{"id": id_, "name": "pay", "args": {"amount": amount}} for amount, id_ in enumerate(ids, 1)]

    async def run(state: MessagesState, config: RunnableConfig) -> object:
        return await ToolNode(langchain_tools()).ainvoke({"messages": state["messages"]}, config)

    client = await serve(compiled(chain(lambda _: {"messages": [AIMessage("", tool_calls=calls)]}, run)))
    await client.send("go")
    await answer_all(client, way)
    assert (client.outcome, len(EFFECTS)) == ("success", 2)
    assert way == "edited" or sorted(EFFECTS) == ["pay 1", "pay 2"]


@pytest.mark.parametrize("way", ["together", "one by one", "resent"])
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(chain(ask_node, call_node("look", 3), call_node("pay", 1)), id="question first"),
        pytest.param(chain(call_node("look", 3), call_node("pay", 1), ask_node), id="call first"),
        pytest.param(chain(call_node("look", 3), ask_and_pay), id="in one node"),
        pytest.param(beside(ask_node, call_node("look", 3), call_node("pay", 1)), id="beside"),
    ],
)
async def test_a_question_of_a_graph_and_an_approval_in_one_turn_end(
    serve: Serve, graph: StateGraph[Any, Any, Any, Any], way: str
) -> None:
    client = await serve(with_checkpoints(graph))
    await client.send("go")
    await answer_all(client, way)
    assert client.outcome == "success"
    assert sorted(EFFECTS) == ["look 3", "pay 1"]
    assert len(client.questions) == 2


MODELS = [
    pytest.param(langgraph_agents.calling, id="langgraph"),
    pytest.param(langgraph_agents.calling_and_remembering, id="langgraph-with-a-checkpointer"),
    pytest.param(pydantic_ai_agents.calling, id="pydantic-ai"),
]


@pytest.mark.parametrize(
    ("store", "ways"), [("memory", WAYS), ("sqlite", ["one by one"]), ("postgres", ["one by one"])], ids=STORES
)
@pytest.mark.parametrize("is_gathered", [False, True], ids=["in order", "at once"])
@pytest.mark.parametrize("agent", MODELS)
async def test_calls_of_a_model_are_run_once(
    serve: Serve, agent: object, store: str, ways: Sequence[str], *, is_gathered: bool
) -> None:
    server = (await serve(agent, store)).ask
    for name, steps in CALLS.items():
        for way in ways:
            EFFECTS.clear()
            client = Client(server)
            await client.send(command(steps, is_gathered=is_gathered))
            await answer_all(client, way)
            check((name, way), client, steps, way)


def asks_over_http(http: httpx.AsyncClient) -> Ask:
    async def ask(run_input: RunAgentInput) -> Sequence[BaseEvent]:
        own = {"run_id": str(uuid.uuid4()), "protocol_version": "1.0"}
        body = run_input.model_copy(update=own).model_dump_json(by_alias=True)
        answer = await http.post("/invocations", content=body)
        return [EVENT.validate_json(frame.data) for frame in frames_of(answer.content)]

    return ask


@pytest.mark.parametrize("is_gathered", [False, True], ids=["in order", "at once"])
async def test_calls_of_a_model_of_strands_are_run_once(*, is_gathered: bool) -> None:
    agent = "tests.agents.frameworks.equipped_strands_agent:calling"
    with serving(python_of("strands"), agent=agent, tools=TOOLS, tool_policy=POLICY) as server:
        async with http_client(f"http://127.0.0.1:{server.port}") as http:
            for name, steps in CALLS.items():
                for way in WAYS:
                    client = Client(asks_over_http(http))
                    await client.send(command(steps, is_gathered=is_gathered))
                    await answer_all(client, way)
                    case = (name, way)
                    assert (case, client.outcome) == (case, "success")
                    assert (case, len(client.questions)) == (case, expected_questions(steps))
                    await client.send(EFFECTS_SAID)
                    assert (case, sorted(client.text.split(", "))) == (case, expected_effects(steps, way) or [""])


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_an_approved_call_of_a_model_of_strands_that_was_cut_off_reads_so_and_is_not_run_again(how: str) -> None:
    agent = "tests.agents.frameworks.equipped_strands_agent:calling"
    with serving(python_of("strands"), agent=agent, tools=TOOLS, tool_policy=POLICY) as server:
        async with http_client(f"http://127.0.0.1:{server.port}") as http:
            client, watcher = Client(asks_over_http(http)), Client(asks_over_http(http))
            await client.send("pay 0")
            answers = [entry(interrupt, "together") for interrupt in client.waiting]
            run = asyncio.create_task(client.resume(answers))
            while not watcher.text:  # until it has started
                await watcher.send(EFFECTS_SAID)
            other = Client(client.ask, client.thread_id)
            if how == "cancel":
                await http.post("/invocations", json={"command": {"type": "cancel", "threadId": client.thread_id}})
            else:
                await other.send(RESULTS_SAID, {"onBusy": "interrupt"})
                assert other.text == CUT_OFF
            await run
            assert (watcher.text, client.outcome) == ("pay 0", "cancelled")
            assert [event.content for event in of_type(client.events, ToolCallResultEvent)] == [CUT_OFF]
            await client.resume(answers)
            await client.send(RESULTS_SAID)
            assert (client.outcome, client.text) == ("success", CUT_OFF)
            await client.send(EFFECTS_SAID)
            assert client.text == ""


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
@pytest.mark.parametrize("agent", MODELS)
async def test_an_approved_call_of_a_model_that_was_cut_off_has_a_result_that_says_so(
    serve: Serve, agent: object, how: str
) -> None:
    client = await serve(agent)
    await cut_off(client, how)


@pytest.mark.parametrize("agent", [*MODELS, pytest.param(with_checkpoints(chain(ask_node)), id="question")])
async def test_an_answer_whose_question_is_forgotten_is_refused(
    serve: Serve, agent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await serve(agent)
    await client.send("pay 1")
    await answer_when_forgotten(client, monkeypatch)


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(langgraph_agents.agent, id="langgraph"),
        pytest.param(langgraph_agents.asking, id="langgraph-with-a-checkpointer"),
        pytest.param(pydantic_ai_agents.agent, id="pydantic-ai"),
    ],
)
async def test_a_call_of_the_frameworks_own_that_was_cut_off_has_a_result_that_says_so(agent: object) -> None:
    EFFECTS.clear()
    service = build_service(Settings(agent="agent"), agent)
    await service.open()
    client = Client(asks(service))
    run = asyncio.create_task(client.send("use hang"))
    await eventually(lambda: "hang" in EFFECTS)
    await service.runs.cancel(caller(), client.thread_id, None)
    await run
    assert [event.content for event in of_type(client.events, ToolCallResultEvent)] == [CUT_OFF]
    await client.send("say bye")
    assert (client.outcome, client.text, EFFECTS) == ("success", "bye", ["hang"])
    messages = await service.threads.messages_since(caller(), client.thread_id, lambda _: False)
    assert [message.content for message in messages if isinstance(message, ToolMessage)] == [CUT_OFF]
    await service.drain(0)
    await service.aclose()


async def test_a_call_of_strands_own_that_was_cut_off_has_a_result_that_says_so() -> None:
    with serving(python_of("strands"), agent="tests.agents.frameworks.strands_agents:agent") as server:
        async with http_client(f"http://127.0.0.1:{server.port}") as http:
            body = user_input("use hang").model_dump_json(by_alias=True)
            async with http.stream("POST", "/invocations", content=body) as response:
                frames = stream_frames(response)
                events = [frame.event async for frame in frames_until(frames, "CUSTOM")]
                thread = events[0]["threadId"]
                await http.post("/invocations", json={"command": {"type": "cancel", "threadId": thread}})
                events = [frame.event async for frame in frames]
            assert [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"] == [CUT_OFF]
            client = Client(asks_over_http(http), thread)
            await client.send("say bye")
            assert (client.outcome, client.text) == ("success", "bye")


async def frames_until(frames: AsyncIterator[SseFrame], kind: str) -> AsyncIterator[SseFrame]:
    async for frame in frames:
        yield frame
        if frame.event["type"] == kind:
            return
