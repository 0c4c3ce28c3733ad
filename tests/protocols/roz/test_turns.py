"""A roz session's turns, as an agent of one's own sees them, and the messages that a session ignores."""

import contextlib
import json
import logging
from collections.abc import AsyncIterator

import grpc
import pytest
from ag_ui.core import AgentCapabilities, RunAgentInput

from agui_container.ports import Item
from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.conversation.two_clients import RozTurn, two_clients
from tests.protocols.grpc.callers import RozSession, serving_caller
from tests.protocols.grpc.client import call_text
from tests.protocols.roz.calls import schema, start_session, wait_for_turn

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
    async with serving_caller(agent) as caller:
        yield await caller.begin_session()


async def test_a_mode_that_an_agent_registers_reaches_it_and_others_are_refused_with_the_names() -> None:
    async with session(TellingAgent("ooda_re_act")) as client:
        for mode in ("ooda_re_act", "react"):
            await client.send(user_message=pb.UserMessage(content="hi", ai_mode=mode))
            assert json.loads(await client.answer()) == {"aiMode": mode}
        await client.send(user_message=pb.UserMessage(content="hi", ai_mode="dream"))
        assert "known are react, ooda_re_act" in (await client.until("error")).message


async def test_an_agent_gets_the_history_the_project_and_the_context_of_the_turn() -> None:
    async def agent(run_input: RunAgentInput) -> AsyncIterator[Item]:
        said = [message.content for message in run_input.messages]
        yield json.dumps([said, *([text.description, text.value] for text in run_input.context or ())])

    earlier = pb.ConversationMessage(role="user", parts=[pb.ContentPart(text=pb.TextContent(text="before"))])
    async with serving_caller(agent) as caller:
        client = caller.new_session()
        await client.send(start=pb.StartSession(history=[earlier], project_context=["It has two arms."]))
        await client.send(user_message=pb.UserMessage(content="hello", system_context="Be brief."))
        project, turn = ["The user's project", "It has two arms."], ["This turn", "Be brief."]
        assert json.loads(await client.answer()) == [["before", "hello"], project, turn]


def test_the_context_of_a_source_reaches_the_model_until_the_source_is_removed(channel: grpc.Channel) -> None:
    def used(*registrations: pb.RegisterTools) -> int:
        with start_session(channel) as talk:
            for registration in registrations:
                talk.send(register_tools=registration)
            talk.say("hello")
            return int(wait_for_turn(talk).usage.input_tokens)

    tools = [schema("sim__move")]
    plain, removal = pb.RegisterTools(source="sim", tools=tools), pb.RegisterTools(source="sim")
    guided = pb.RegisterTools(source="sim", tools=tools, system_context="one two three four five")
    assert used(guided) >= used(plain) + 5
    assert used(guided, plain) == used(plain)
    assert used(guided, removal) == used()


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
            await client.call.send(unknown)
            await client.send(user_message=pb.UserMessage(content="hi"))
            assert await client.answer() == "{}"
    lines = [record.getMessage() for record in caplog.records if "roz request ignored" in record.getMessage()]
    assert lines == [f"roz request ignored kind={kind}" for kind in (*ignored, None)]


async def test_a_servers_tool_that_a_client_offers_too_is_run_by_the_server_with_a_start_and_an_end() -> None:
    async with two_clients() as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(call_text("echo", text="ahoy"), tools=[schema("echo")])
        await turn.until("turn_finished")
        calls = [kind for kind in turn.kinds if kind.startswith("tool_call")]
        assert calls == ["tool_call_started", "tool_call_finished"]
        assert turn.all("tool_call_finished")[0].result_summary == "ahoy"
