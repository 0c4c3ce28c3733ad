"""A roz session's turns, as an agent of one's own sees them, their tools, and the messages that a session ignores."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import pytest
from ag_ui.core import (
    AgentCapabilities,
    RunAgentInput,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UserMessage,
)

from agui_container.assistant.assistant import Assistant
from agui_container.ports import Delta, Item, Prompt
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.roz.run_inputs import ClientTools
from tests.agents.doubles import DONE, ScriptedModel, ScriptedTool, asks
from tests.protocols.clients import Clients, serving_clients
from tests.protocols.grpc.client import RozSession, call_text, schema

pytestmark = pytest.mark.wire


class TellingAgent:
    def __init__(self, *modes: str) -> None:
        self._modes = list(modes)

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(custom={"aiModes": self._modes})

    async def run(self, run_input: RunAgentInput) -> AsyncIterator[Item]:
        yield json.dumps(run_input.forwarded_props)


@contextlib.asynccontextmanager
async def session(agent: object) -> AsyncIterator[RozSession]:
    async with serving_clients(agent) as clients:
        yield await clients.start_session()


async def test_a_mode_that_an_agent_registers_reaches_it_and_others_are_refused_with_the_names() -> None:
    async with session(TellingAgent("ooda_re_act")) as client:
        for mode in ("ooda_re_act", "react"):
            assert json.loads(await client.ask("hi", ai_mode=mode)) == {"aiMode": mode}
        await client.say("hi", ai_mode="dream")
        assert "known are react, ooda_re_act" in (await client.until("error")).message


async def test_an_agent_gets_the_history_the_project_and_the_context_of_the_turn() -> None:
    async def agent(run_input: RunAgentInput) -> AsyncIterator[Item]:
        said = [message.content for message in run_input.messages]
        yield json.dumps([said, *([text.description, text.value] for text in run_input.context or ())])

    earlier = pb.ConversationMessage(role="user", parts=[pb.ContentPart(text=pb.TextContent(text="before"))])
    async with serving_clients(agent) as clients:
        client = await clients.start_session(history=[earlier], project_context=["It has two arms."])
        project, turn = ["The user's project", "It has two arms."], ["This turn", "Be brief."]
        answer = json.loads(await client.ask("hello", system_context="Be brief."))
        assert answer == [["before", "hello"], project, turn]


async def test_the_context_of_a_source_reaches_the_model_until_the_source_is_removed(clients: Clients) -> None:
    async def used(*registrations: pb.RegisterTools) -> int:
        session = await clients.start_session()
        for registration in registrations:
            await session.send(register_tools=registration)
        await session.say("hello")
        return int((await session.turn()).usage.input_tokens)

    tools = [schema("sim__move")]
    plain, removal = pb.RegisterTools(source="sim", tools=tools), pb.RegisterTools(source="sim")
    guided = pb.RegisterTools(source="sim", tools=tools, system_context="one two three four five")
    assert await used(guided) >= await used(plain) + 5
    assert await used(guided, plain) == await used(plain)
    assert await used(guided, removal) == await used()


async def test_each_message_of_a_robot_is_ignored_with_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    unknown = pb.SessionRequest.FromString(b"\x9a\x06\x00")  # field 99, of a later release
    ignored = {
        "webrtc_answer": pb.WebRtcAnswer(sdp="x"),
        "ice_candidate": pb.IceCandidate(candidate="x"),
        "camera_request": pb.CameraRequest(camera_ids=["front"]),
    }
    with caplog.at_level(logging.INFO):
        async with session(TellingAgent()) as client:
            for kind, content in ignored.items():
                await client.send(**{kind: content})
            await client.send_message(unknown)
            assert await client.ask("hi") == "{}"
    lines = [record.getMessage() for record in caplog.records if "roz request ignored" in record.getMessage()]
    assert lines == [f"roz request ignored kind={kind}" for kind in (*ignored, None)]


async def test_a_servers_tool_that_a_client_offers_too_is_run_by_the_server_with_a_start_and_an_end(
    clients: Clients,
) -> None:
    turn = await clients.start_session()
    await turn.ask(call_text("echo", text="ahoy"), tools=[schema("echo")])
    calls = [kind for kind in turn.events if kind.startswith("tool_call")]
    assert calls == ["tool_call_started", "tool_call_finished"]
    assert turn.all("1.0 tool_call_finished")[0].result_summary == "ahoy"


async def calls_first(run_input: RunAgentInput) -> AsyncIterator[Item]:
    """Call the first tool, and say afterwards which tools and texts the next run has."""
    if isinstance(run_input.messages[-1], UserMessage):
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="open")
        yield ToolCallArgsEvent(tool_call_id="c1", delta="{}")
        yield ToolCallEndEvent(tool_call_id="c1")
    else:
        yield " ".join(
            [*(tool.name for tool in run_input.tools or ()), *(text.value for text in run_input.context or ())]
        )


async def names_tools(run_input: RunAgentInput) -> AsyncIterator[Item]:
    yield " ".join(tool.name for tool in run_input.tools or ())


async def test_tools_that_a_client_registers_during_a_call_are_there_in_the_next_run_of_the_turn() -> None:
    async with serving_clients(calls_first) as clients:
        turn = await clients.start_session(tools=[schema("open")])
        await turn.say("go")
        call = (await turn.until("1.0 tool_call_requested")).call_id
        registration = pb.RegisterTools(source="door", tools=[schema("close")], system_context="The door is open.")
        await turn.send(register_tools=registration)
        await turn.give(call, "open")
        assert await turn.answer() == "open close The door is open."


async def register(session: RozSession, registration: pb.RegisterTools) -> None:
    await session.send(register_tools=registration)
    await session.send(ping=pb.Ping())
    await session.until("pong")


async def test_a_registration_while_a_tool_of_the_server_runs_counts_from_the_next_model_call() -> None:
    is_registered = asyncio.Event()

    async def start_sim(_: Mapping[str, object]) -> str:
        await is_registered.wait()
        return "started"

    model = ScriptedModel([asks("start_sim"), asks("sim__move"), DONE])
    async with serving_clients(Assistant(model, [ScriptedTool("start_sim", start_sim)])) as clients:
        turn = await clients.start_session()
        await turn.say("go")
        await turn.until("1.0 tool_call_started")
        await register(
            turn, pb.RegisterTools(source="sim", tools=[schema("sim__move")], system_context="Mind the cat.")
        )
        is_registered.set()
        call = await turn.until("1.0 tool_call_requested")
        await turn.give(call.call_id, "moved")
        assert await turn.answer() == "Done."
    seen = [([tool.name for tool in prompt.tools], "Mind the cat." in prompt.system) for prompt in model.prompts]
    assert seen == [(["start_sim"], False), *[(["start_sim", "sim__move"], True)] * 2]


async def test_a_tool_that_is_removed_while_the_model_calls_it_is_requested_and_then_gone() -> None:
    is_asked, is_removed = asyncio.Event(), asyncio.Event()

    class WaitingModel(ScriptedModel):
        async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
            is_asked.set()
            await is_removed.wait()
            async for delta in super().stream(prompt):
                yield delta

    model = WaitingModel([asks("sim__move"), DONE])
    async with serving_clients(Assistant(model)) as clients:
        turn = await clients.start_session(tools=[schema("sim__move"), schema("look")])
        await turn.say("go")
        await is_asked.wait()
        await register(turn, pb.RegisterTools(source="sim"))
        is_removed.set()
        call = await turn.until("1.0 tool_call_requested")
        await turn.give(call.call_id, "the sim has stopped")
        assert await turn.answer() == "Done."
    assert [[tool.name for tool in prompt.tools] for prompt in model.prompts] == [["sim__move", "look"], ["look"]]


async def test_a_tool_of_the_client_that_a_rule_denies_is_not_given_to_the_model() -> None:
    rules = '[{"tool_pattern": "door_*", "policy": "deny"}]'
    async with serving_clients(names_tools, tool_policy=rules) as clients:
        turn = await clients.start_session(tools=[schema("look"), schema("door_open")])
        assert await turn.ask("go") == "look"


def test_texts_without_a_source_are_added_once_also_if_they_begin_as_another_one() -> None:
    tools = ClientTools()
    for text in ("Move slowly.\n\nStop at doors.", "Move", "Move slowly.\n\nStop at doors.", "Stop at doors.", "Move"):
        tools.register("", {}, text)
    assert tools.system_contexts == {"": "Move slowly.\n\nStop at doors.\n\nMove"}
