"""Sessions of roz, as clients of release 0.2 (fields 1 to 11) and of 1.0 (``session_event``) see them."""

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.grpc.client import call_text
from tests.protocols.roz.calls import RozTalk, schema, start_session, wait_for_turn

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def test_a_session_flows_as_in_the_diagram(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move", timeout_ms=5000, category=pb.TOOL_CATEGORY_PHYSICAL)]) as talk:
        started = talk.all("session_started")[0]
        assert started.session_id
        assert started.model == "offline"
        policies = {rule.tool_pattern: rule.policy for rule in started.permissions}
        assert (policies["pay"], policies["wipe"]) == ("require_confirmation", "block")
        talk.say(call_text("move", x=3), message_id="m1")
        request = talk.until("tool_request")
        assert (request.tool_name, MessageToDict(request.parameters), request.timeout_ms) == ("move", {"x": 3}, 5000)
        result = pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="moved to 3", exit_code=0)
        talk.send(tool_result=result)
        complete = wait_for_turn(talk)
        assert (complete.message_id, complete.stop_reason) == ("m1", "end_turn")
        assert complete.usage.input_tokens > 0
        assert complete.usage.output_tokens > 0
        text = talk.all("text_delta")
        assert {delta.message_id for delta in text} == {"m1"}
        assert "moved to 3" in "".join(delta.content for delta in text)
        talk.send(cancel_session=pb.CancelSession(reason="done"))
        assert [kind for kind in talk.rest() if not kind.startswith("1.0 ")] == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a":' * 33 + "1" + "}" * 33, "the client cannot get the arguments"),
        ("{no", "the arguments are not valid JSON"),
    ],
)
def test_a_call_whose_arguments_no_client_can_read_is_an_error_for_the_model(
    channel: grpc.Channel, arguments: str, reason: str
) -> None:
    with start_session(channel, tools=[schema("look")]) as talk:
        talk.say(f"call look {arguments}")
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert "tool_request" not in talk.kinds
        assert [kind for kind in talk.new if kind.startswith("tool_call")] == [
            "tool_call_started",
            "tool_call_finished",
        ]
        assert f"failed: {reason}" in "".join(delta.content for delta in talk.all("text_delta"))
        talk.say("hello")
        assert wait_for_turn(talk).stop_reason == "end_turn"


def requested(talk: RozTalk, name: str) -> bool:
    talk.say(call_text(name, x=1))
    while True:
        kind, content = talk.next()
        if kind == "tool_request":
            talk.send(tool_result=pb.ToolResult(tool_call_id=content.tool_call_id, success=True, result="ok"))
            wait_for_turn(talk)
            return True
        if kind == "turn_complete":
            talk.until("activity_update")
            return False


def test_a_source_registers_replaces_and_removes_its_tools(channel: grpc.Channel) -> None:
    def register(*names: str, source: str = "sim") -> pb.RegisterTools:
        return pb.RegisterTools(source=source, tools=[schema(name) for name in names], system_context="Move slowly.")

    with start_session(channel, tools=[schema("base"), schema("sim__old")]) as talk:
        talk.send(register_tools=register("sim__a", "sim__b"))
        assert [requested(talk, name) for name in ("base", "sim__a", "sim__b", "sim__old")] == [True, True, True, False]
        talk.send(register_tools=register("sim__b"))
        talk.send(register_tools=register("lab__c", source="lab"))
        assert [requested(talk, name) for name in ("sim__a", "sim__b", "lab__c")] == [False, True, True]
        talk.send(register_tools=register())
        assert [requested(talk, name) for name in ("sim__b", "lab__c", "base")] == [False, True, True]


def test_a_turns_own_tools_replace_the_sessions_for_that_turn(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("base")]) as talk:
        talk.say(call_text("special", x=1), tools=[schema("special")])
        request = talk.until("tool_request")
        assert request.tool_name == "special"
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="ok"))
        wait_for_turn(talk)
        assert [requested(talk, name) for name in ("special", "base")] == [False, True]


def test_a_client_of_release_1_0_gets_everything_in_session_events(channel: grpc.Channel) -> None:
    talk = RozTalk(channel)
    with talk:
        talk.send(start=pb.StartSession(tools=[schema("move")]))
        started = talk.until("1.0 session_started")
        assert (started.mode, started.model_name) == ("react", "offline")
        assert ("wipe", "block") in [(rule.tool_pattern, rule.policy) for rule in started.permissions]
        talk.say(f"{call_text('pay', amount=3)}\n{call_text('move', x=2)}", message_id="m1")
        requested = talk.until("1.0 tool_call_requested")
        asked = talk.until("1.0 approval_requested")
        assert asked.action == "pay"
        assert asked.timeout_secs > 3000
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=asked.approval_id, approved=True))
        talk.send(tool_result=pb.ToolResult(tool_call_id=requested.call_id, success=True, result="moved"))
        finished = talk.until("1.0 turn_finished")
        assert (finished.message_id, finished.stop_reason) == ("m1", "end_turn")
        talk.say("think about echo")
        talk.until("1.0 turn_finished")
        talk.say(call_text("echo", text="x"))
        talk.until("1.0 turn_finished")
        talk.say("hello", ai_mode="dream", message_id="m9")
        assert talk.until("1.0 session_rejected").code == "VALIDATION_ERROR"
        assert talk.until("1.0 turn_finished").message_id == "m9"
        talk.send(cancel_session=pb.CancelSession())
        list(talk.rest())
    assert set(talk.new) == {
        *("session_started", "turn_started", "activity_changed", "presence_hinted", "model_call_completed"),
        *("tool_call_requested", "approval_requested", "approval_resolved", "tool_call_started", "tool_call_finished"),
        *("text_delta", "thinking_delta", "turn_finished", "session_rejected", "session_completed"),
    }
    events = talk.all("session_event")
    assert len({event.event_id for event in events}) == len(events)
    assert all(event.timestamp.seconds > 1_700_000_000 for event in events)
    assert {event.correlation_id for event in events if event.HasField("turn_finished")} > {"m1"}
