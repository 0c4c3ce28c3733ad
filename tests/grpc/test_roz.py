"""Sessions of roz, as clients of release 0.2 (fields 1 to 11) and of 1.0 (``session_event``) see them."""

import json
import sys
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.client import call_text
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.roz_calls import RozTalk, schema, start_session, wait_for_approval, wait_for_turn
from tests.requirements import requirement
from tests.sockets.process import Servers
from tests.tools.mcp_fixtures import ENVIRONMENT


@pytest.fixture
def old_channel(servers: Servers, dial: Dial) -> grpc.Channel:
    """A server that speaks to clients of release 0.2 only."""
    return dial(servers(**ASSISTANT, AGUI_ROZ_WIRE="0.2"))


# --- the seed's diagram -----------------------------------------------------------------------------------------------


@requirement("roz.session")
def test_a_session_flows_as_in_the_diagram(old_channel: grpc.Channel) -> None:
    with start_session(
        old_channel, tools=[schema("move", timeout_ms=5000, category=pb.TOOL_CATEGORY_PHYSICAL)]
    ) as talk:
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
        assert list(talk.rest()) == []
    assert talk.new == []


@requirement("roz.session")
def test_activity_and_presence_follow_the_turn_in_the_words_of_each_generation(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move", category=pb.TOOL_CATEGORY_PHYSICAL)]) as talk:
        talk.say(call_text("move", x=1))
        request = talk.until("tool_request")
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="ok"))
        wait_for_turn(talk)
        talk.until("1.0 activity_changed")
        states = [(update.state, update.detail) for update in talk.all("activity_update")]
        assert states == [("thinking", ""), ("calling_tool", "move"), ("thinking", ""), ("idle", "")]
        changes = [it.activity_changed for it in talk.all("session_event") if it.HasField("activity_changed")]
        assert [change.state for change in changes] == ["planning", "calling_tool", "planning", "idle"]
        hints = [it.presence_hinted for it in talk.all("session_event") if it.HasField("presence_hinted")]
        assert [hint.level for hint in talk.all("presence_hint")] == ["full", "mini", "full"]
        assert [hint.level for hint in hints] == ["full", "mini", "full"]


# --- tools ------------------------------------------------------------------------------------------------------------


@requirement("roz.tools")
def test_a_tool_that_fails_is_an_error_for_the_model(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move")]) as talk:
        talk.say(call_text("move", x=1))
        request = talk.until("tool_request")
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=False, result="it is stuck"))
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert "it is stuck" in "".join(delta.content for delta in talk.all("text_delta"))


@requirement("roz.tools")
@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"success": True, "exit_code": 3}, "the result of move is [exit code 3]"),
        ({"success": True, "result": "a", "exit_code": 0}, "the result of move is a\n[exit code 0]"),
        ({"success": True, "result": "a", "truncated": True}, "the result of move is a\n[the output was truncated]"),
    ],
)
def test_exit_code_and_truncation_of_a_result_reach_the_model(
    channel: grpc.Channel, result: dict[str, Any], text: str
) -> None:
    with start_session(channel, tools=[schema("move")]) as talk:
        talk.say(call_text("move", x=1))
        request = talk.until("tool_request")
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, **result))
        wait_for_turn(talk)
        assert text in "".join(delta.content for delta in talk.all("text_delta")).lower()


@requirement("roz.tools")
def test_a_result_that_never_comes_is_a_tool_error(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move", timeout_ms=200)]) as talk:
        talk.say(call_text("move", x=1))
        request = talk.until("tool_request")
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert "within 200 ms" in "".join(delta.content for delta in talk.all("text_delta"))
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="late"))
        assert talk.until("error").code == "VALIDATION_ERROR"


@requirement("roz.tools")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a":' * 33 + "1" + "}" * 33, "the client cannot get the arguments"),
        (f'{{"x": {10**400}}}', "the arguments are not valid JSON"),
        ('{"x": 1e400}', "the arguments are not valid JSON"),
        ('["x"]', "the arguments are not a JSON object"),
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


@requirement("roz.tools")
def test_arguments_that_are_nested_as_deeply_as_a_client_can_read_reach_it(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("look")]) as talk:
        talk.say("call look " + '{"a":' * 32 + "1" + "}" * 32)
        assert talk.until("tool_request").parameters == talk.until("1.0 tool_call_requested").parameters


@requirement("roz.tools")
def test_tools_of_client_and_server_work_side_by_side(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move")]) as talk:
        talk.say(f"{call_text('echo', text='ahoy')}\n{call_text('move', x=1)}")
        request = talk.until("tool_request")
        assert request.tool_name == "move"
        assert result_summaries(talk) == {"echo": "ahoy"}
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="moved"))
        assert wait_for_turn(talk).stop_reason == "end_turn"


@requirement("roz.tools", "protocol.crossed")
def test_tools_of_client_server_and_mcp_server_work_in_one_turn(servers: Servers, dial: Dial) -> None:
    demo = {"name": "demo", "command": sys.executable, "args": ["-m", "tests.tools.mcp_demo"], "env": ENVIRONMENT}
    channel = dial(servers(**ASSISTANT, AGUI_MCP_SERVERS=json.dumps([demo])))
    with start_session(channel, tools=[schema("move")]) as talk:
        talk.say("\n".join([call_text("echo", text="ahoy"), call_text("demo_add", a=40, b=2), call_text("move", x=1)]))
        request = talk.until("tool_request")
        assert request.tool_name == "move", "only the client's own tool is asked of the client"
        assert result_summaries(talk) == {"echo": "ahoy", "demo_add": "42"}
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="moved"))
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert result_summaries(talk) == {"echo": "ahoy", "demo_add": "42", "move": "moved"}
        assert len(talk.all("tool_request")) == 1


def result_summaries(talk: RozTalk) -> dict[str, str]:
    """Results of the tools that a client of release 1.0 has been told of, by name."""
    events = [it.tool_call_finished for it in talk.all("session_event") if it.HasField("tool_call_finished")]
    return {event.tool_name: event.result_summary for event in events}


def requested(talk: RozTalk, name: str) -> bool:
    """Return True if a call of this tool is sent to the client."""
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


@requirement("roz.tools")
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


@requirement("roz.tools")
def test_a_registration_without_a_source_adds_to_the_tools_of_the_session(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("base")]) as talk:
        talk.send(register_tools=pb.RegisterTools(tools=[schema("more")], system_context="Be quick."))
        talk.send(register_tools=pb.RegisterTools(source="", tools=[schema("most")]))
        talk.send(register_tools=pb.RegisterTools())
        assert [requested(talk, name) for name in ("base", "more", "most")] == [True, True, True]


@requirement("roz.tools")
def test_a_turns_own_tools_replace_the_sessions_for_that_turn(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("base")]) as talk:
        talk.say(call_text("special", x=1), tools=[schema("special")])
        request = talk.until("tool_request")
        assert request.tool_name == "special"
        talk.send(tool_result=pb.ToolResult(tool_call_id=request.tool_call_id, success=True, result="ok"))
        wait_for_turn(talk)
        assert [requested(talk, name) for name in ("special", "base")] == [False, True]


# --- approvals --------------------------------------------------------------------------------------------------------


@requirement("roz.approvals", "approval.edited")
def test_a_modifier_replaces_the_arguments_of_an_approved_call(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say(call_text("pay", amount=5))
        decision = pb.PermissionDecision(tool_call_id=wait_for_approval(talk), approved=True)
        decision.modifier.update({"amount": 2})
        talk.send(permission_decision=decision)
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert "paid 2" in "".join(delta.content for delta in talk.all("text_delta"))


@requirement("roz.approvals")
def test_a_client_may_send_back_the_details_that_earlier_servers_sent(old_channel: grpc.Channel) -> None:
    with start_session(old_channel) as talk:
        talk.say(call_text("pay", amount=5))
        detail = {"tool_name": "pay", "tool_call_id": wait_for_approval(talk), "reason": "it costs money"}
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=json.dumps(detail), approved=True))
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert "paid 5" in "".join(delta.content for delta in talk.all("text_delta"))
        for unknown in (json.dumps(detail), "{}", "{no"):
            talk.send(permission_decision=pb.PermissionDecision(tool_call_id=unknown, approved=True))
            assert talk.until("error").code == "VALIDATION_ERROR"


@requirement("roz.approvals")
def test_clients_of_both_generations_are_told_the_arguments_that_they_approve(channel: grpc.Channel) -> None:
    asked = 'it costs money; arguments: {"amount": 5}'
    with start_session(channel) as talk:
        talk.say(call_text("pay", amount=5))
        update = talk.until("1.0 approval_requested")
        assert (update.action, update.reason) == ("pay", asked)
        old = [hint.reason for hint in talk.all("presence_hint")]
        new = [it.presence_hinted.reason for it in talk.all("session_event") if it.HasField("presence_hinted")]
        activity = [it.activity_changed for it in talk.all("session_event") if it.HasField("activity_changed")][-1]
        assert old[-1] == new[-1] == activity.reason == f"pay: {asked}"
        assert activity.state == "awaiting_approval"
        assert talk.all("activity_update")[-1].detail == update.approval_id


@requirement("roz.approvals")
@pytest.mark.parametrize(
    ("decision", "outcome"),
    [
        ({"approved": True}, {"type": "approved", "approved": True}),
        ({"approved": False}, {"type": "denied", "approved": False, "reason": "The user has denied the call."}),
        (
            {"approved": True, "modifier": {"amount": 2}},
            {
                "type": "modified",
                "approved": True,
                "modifications": [{"field": "amount", "old_value": "5", "new_value": "2"}],
            },
        ),
        ({"approved": True, "modifier": {"amount": 5}}, {"type": "approved", "approved": True}),
    ],
    ids=["approved", "denied", "modified", "unmodified"],
)
def test_the_outcome_of_an_approval_has_the_words_that_clients_of_release_1_0_read(
    channel: grpc.Channel, decision: dict[str, Any], outcome: dict[str, Any]
) -> None:
    with start_session(channel) as talk:
        talk.say(call_text("pay", amount=5))
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=wait_for_approval(talk), **decision))
        assert MessageToDict(talk.until("1.0 approval_resolved").outcome) == outcome


@requirement("roz.approvals")
def test_late_and_unknown_decisions_are_refused_without_harm(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id="nobody", approved=True))
        assert talk.until("error").code == "VALIDATION_ERROR"
        talk.say(call_text("pay", amount=5))
        call_id = wait_for_approval(talk)
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id="nobody", approved=True))
        assert "nobody" in talk.until("error").message
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=True))
        wait_for_turn(talk)
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=False))
        assert not talk.until("error").retryable


# --- release 1.0 ------------------------------------------------------------------------------------------------------


@requirement("roz.answers")
def test_a_client_of_release_1_0_gets_everything_in_session_events(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(**ASSISTANT, AGUI_ROZ_WIRE="1.0"))
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
    assert talk.old == []
    assert set(talk.new) == {
        *("session_started", "turn_started", "activity_changed", "presence_hinted", "model_call_completed"),
        *("tool_call_requested", "approval_requested", "approval_resolved", "tool_call_started", "tool_call_finished"),
        *("text_delta", "thinking_delta", "turn_finished", "session_rejected", "session_completed"),
    }
    events = [message.session_event for message in talk.seen]
    assert len({event.event_id for event in events}) == len(events)
    assert all(event.timestamp.seconds > 1_700_000_000 for event in events)
    assert {event.correlation_id for event in events if event.HasField("turn_finished")} > {"m1"}


@requirement("roz.answers")
def test_by_default_each_generation_finds_its_own_form(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("hello")
        wait_for_turn(talk)
        old = "".join(delta.content for delta in talk.all("text_delta"))
        new = "".join(event.text_delta.content for event in talk.all("session_event") if event.HasField("text_delta"))
        assert old == new != ""


@requirement("roz.answers")
def test_a_skill_that_is_read_is_told(servers: Servers, dial: Dial, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("skills") / "haiku"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: haiku\ndescription: Three lines.\n---\n\nWrite three lines.\n")
    with start_session(dial(servers(AGUI_AGENT="assistant", AGUI_SKILLS=str(folder.parent)))) as talk:
        talk.say(call_text("load_skill", name="haiku"))
        assert talk.until("1.0 skill_loaded").name == "haiku"
