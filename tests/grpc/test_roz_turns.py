"""A roz session's turns, as an agent of one's own sees them, and the messages that a session ignores."""

import contextlib
import json
import logging
from collections.abc import AsyncIterator
from typing import Any, Self

import grpc
import pytest
from ag_ui.core import (
    AgentCapabilities,
    RunAgentInput,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    ToolMessage,
)
from grpclib.client import Channel, StreamStreamMethod

from agui_container.ports import Item
from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.behaviour.over_grpc import ClientCall
from tests.grpc.client import call_text
from tests.grpc.http_requests import answer_approval
from tests.grpc.in_loop_clients import port_of
from tests.grpc.roz_calls import (
    SESSION,
    RozTalk,
    schema,
    session_of,
    start_session,
    wait_for_approval,
    wait_for_turn,
)
from tests.grpc.two_clients import RozTurn, two_clients
from tests.requirements import requirement
from tests.sockets.process import ServerProcess


class TellingAgent:
    """An agent that answers with the forwarded properties of its run."""

    def __init__(self, *modes: str) -> None:
        self._modes = list(modes)

    def capabilities(self) -> AgentCapabilities:
        return AgentCapabilities(custom={"aiModes": self._modes})

    async def run(self, run_input: RunAgentInput) -> AsyncIterator[Item]:
        yield json.dumps(run_input.forwarded_props)


class CallingAgent:
    """An agent that calls the first tool of the client, if there is one, and answers with the result.

    Attributes:
        offered: names of the tools in each run.
    """

    def __init__(self) -> None:
        self.offered: list[list[str]] = []

    async def run(self, run_input: RunAgentInput) -> AsyncIterator[Item]:
        names = [tool.name for tool in run_input.tools or ()]
        self.offered.append(names)
        last = run_input.messages[-1]
        if isinstance(last, ToolMessage):
            yield f"It said {last.content}."
        elif names:
            yield ToolCallStartEvent(tool_call_id="c1", tool_call_name=names[0])
            yield ToolCallArgsEvent(tool_call_id="c1", delta="{}")
            yield ToolCallEndEvent(tool_call_id="c1")
        else:
            yield "There is no tool."


class RozClient:
    """One session in the test's event loop. ``call`` is the call that carries it."""

    def __init__(self, call: ClientCall[pb.SessionRequest, pb.SessionResponse]) -> None:
        self.call = call

    async def send(self, **request: Any) -> Self:
        await self.call.send(pb.SessionRequest(**request))
        return self

    async def until(self, kind: str) -> Any:
        """The next response of a kind."""
        while (response := await self.call.receive()) is not None:
            if response.WhichOneof("response") == kind:
                return getattr(response, kind)
        raise AssertionError(f"the session has ended without {kind}")

    async def text(self) -> str:
        """The text of a turn, read to its end."""
        text = ""
        while (response := await self.call.receive()) is not None:
            text += response.text_delta.content
            if response.HasField("turn_complete"):
                return text
        raise AssertionError("the session has ended inside a turn")


@contextlib.asynccontextmanager
async def session(agent: object, **start: Any) -> AsyncIterator[RozClient]:
    """A session with an agent."""
    async with port_of(agent) as port:
        channel = Channel("127.0.0.1", port)
        call = ClientCall(StreamStreamMethod(channel, SESSION, pb.SessionRequest, pb.SessionResponse), {})
        client = RozClient(call)
        try:
            await client.send(start=pb.StartSession(**start))
            await client.until("session_started")
            yield client
        finally:
            await call.close()
            channel.close()


# --- properties -------------------------------------------------------------------------------------------------------


@requirement("roz.start")
async def test_the_ids_of_environment_and_host_reach_an_agent() -> None:
    async with session(TellingAgent(), environment_id="lab", host_id="arm-7") as client:
        await client.send(user_message=pb.UserMessage(content="hi"))
        assert json.loads(await client.text()) == {"environmentId": "lab", "hostId": "arm-7"}
    async with session(TellingAgent()) as client:
        await client.send(user_message=pb.UserMessage(content="hi"))
        assert json.loads(await client.text()) == {}


@requirement("roz.start")
async def test_a_mode_that_an_agent_registers_reaches_it_and_others_are_refused_with_the_names() -> None:
    async with session(TellingAgent("ooda_re_act")) as client:
        for mode in ("ooda_re_act", "react"):
            await client.send(user_message=pb.UserMessage(content="hi", ai_mode=mode))
            assert json.loads(await client.text()) == {"aiMode": mode}
        await client.send(user_message=pb.UserMessage(content="hi", ai_mode="dream"))
        assert "known are react, ooda_re_act" in (await client.until("error")).message


# --- tools ------------------------------------------------------------------------------------------------------------


@requirement("roz.tools")
async def test_a_turn_keeps_the_tools_that_it_began_with() -> None:
    agent = CallingAgent()
    async with session(agent) as client:
        await client.send(register_tools=pb.RegisterTools(source="sim", tools=[schema("sim__move")]))
        await client.send(user_message=pb.UserMessage(content="hi"))
        request = await client.until("tool_request")
        await client.send(register_tools=pb.RegisterTools(source="sim"))
        result = pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="moved")
        await client.send(tool_result=result)
        assert await client.text() == "It said moved."
        await client.send(user_message=pb.UserMessage(content="hi"))
        assert await client.text() == "There is no tool."
    assert agent.offered == [["sim__move"], ["sim__move"], []]


@requirement("roz.tools")
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


# --- ignored messages -------------------------------------------------------------------------------------------------


@requirement("roz.start")
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
            assert await client.text() == "{}"
    lines = [record.getMessage() for record in caplog.records if "roz request ignored" in record.getMessage()]
    assert lines == [f"roz request ignored kind={kind}" for kind in (*ignored, None)]


def calls_of(talk: RozTalk, kind: str) -> list[tuple[str, str]]:
    """Return ids and names of the calls in the events of a kind, in order."""
    events = [getattr(it.session_event, kind) for it in talk.seen if talk.kind(it) == f"1.0 {kind}"]
    return [(event.call_id, event.tool_name) for event in events]


@requirement("roz.answers", "roz.approvals")
@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["here", "elsewhere"])
def test_an_approved_call_of_a_subagent_starts_once_and_finishes_once(
    server: ServerProcess, channel: grpc.Channel, *, is_elsewhere: bool
) -> None:
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("pay", amount=1))
        call_id = wait_for_approval(talk)
        if is_elsewhere:
            answer_approval(server, session_of(talk), "elsewhere", approved=True)
        else:
            talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=True))
        wait_for_turn(talk)
    started, finished = calls_of(talk, "tool_call_started"), calls_of(talk, "tool_call_finished")
    assert [name for _, name in started] == ["delegate", "pay"]
    assert (call_id, "pay") in started
    assert finished == [*reversed(started)]


@requirement("roz.approvals")
def test_a_denied_call_of_a_subagent_neither_starts_nor_finishes(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("pay", amount=1))
        call_id = wait_for_approval(talk)
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=False))
        wait_for_turn(talk)
    for kind in ("tool_call_started", "tool_call_finished"):
        assert [name for _, name in calls_of(talk, kind)] == ["delegate"]


# --- calls of the server's tools --------------------------------------------------------------------------------------


@requirement("roz.answers", "protocol.crossed")
@pytest.mark.parametrize("approved", [True, False])
async def test_a_call_that_another_session_has_begun_finishes_with_its_name(
    approved: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async with two_clients() as clients:
        first = RozTurn(clients.grpc.new_session())
        await first.say(call_text("pay", amount=5))
        await first.until("approval_requested")
        second = RozTurn(clients.on_thread(first.thread).new_session())
        await second.say("hello")
        await second.decide((await second.until("approval_requested")).approval_id, approved=approved)
        assert (await second.until("tool_call_finished")).tool_name == "pay"


@requirement("roz.answers", "roz.tools")
async def test_a_servers_tool_that_a_client_offers_too_is_run_by_the_server_with_a_start_and_an_end() -> None:
    async with two_clients() as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(call_text("echo", text="ahoy"), tools=[schema("echo")])
        await turn.until("turn_finished")
        calls = [kind for kind in turn.kinds if kind.startswith("tool_call")]
        assert calls == ["tool_call_started", "tool_call_finished"]
        assert turn.all("tool_call_finished")[0].result_summary == "ahoy"
