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
from tests.grpc.http_requests import get_json, run_over_sse
from tests.grpc.roz_calls import RozTalk, schema, session_of, start_session, wait_for_approval, wait_for_turn
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, Servers
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


# --- control ----------------------------------------------------------------------------------------------------------


@requirement("roz.control")
@pytest.mark.parametrize("message_id", ["", "x" * 513])
def test_feedback_on_an_impossible_id_is_refused_and_the_session_goes_on(
    channel: grpc.Channel, message_id: str
) -> None:
    with start_session(channel) as talk:
        talk.send(feedback=pb.MessageFeedback(message_id=message_id, rating="positive"))
        assert talk.until("error").message == "message_id: must have 1 to 512 characters."
        talk.say("hello")
        assert wait_for_turn(talk).stop_reason == "end_turn"


@requirement("roz.control")
def test_a_turn_that_waits_for_the_client_can_be_cancelled(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move")]) as talk:
        for text, kind in (
            (call_text("move", x=1), "tool_request"),
            (call_text("pay", amount=1), "1.0 approval_requested"),
        ):
            talk.say(text)
            talk.until(kind)
            talk.send(cancel_turn=pb.CancelTurn())
            assert wait_for_turn(talk).stop_reason == "cancelled"
        talk.say("hello")
        assert wait_for_turn(talk).stop_reason == "end_turn"


@requirement("roz.control")
def test_a_cancelled_session_ends_its_turn(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("wait 30")
        talk.until("text_delta")
        talk.send(cancel_session=pb.CancelSession(reason="bye"))
        assert wait_for_turn(talk).stop_reason == "cancelled"
        assert list(talk.rest())[-1] == "1.0 session_completed"


@requirement("roz.control")
def test_a_session_that_has_not_begun_is_not_completed(channel: grpc.Channel) -> None:
    with RozTalk(channel) as talk:
        talk.send(cancel_session=pb.CancelSession()).end()
        assert list(talk.rest()) == ["error", "1.0 session_rejected"]


@requirement("roz.control")
def test_a_client_that_says_nothing_more_gets_its_answer(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("hello").end()
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert list(talk.rest())[-1] == "1.0 session_completed"


@requirement("roz.control")
def test_a_call_of_a_client_that_says_nothing_more_stays_open(channel: grpc.Channel) -> None:
    with start_session(channel, tools=[schema("move")]) as talk:
        talk.say(call_text("move", x=1)).end()
        assert wait_for_turn(talk).stop_reason == "tool_use"


@requirement("roz.control")
def test_a_ping_is_answered(channel: grpc.Channel) -> None:
    with RozTalk(channel) as talk:
        talk.send(ping=pb.Ping())
        talk.until("pong")


@requirement("roz.control")
def test_silence_is_broken_by_keepalives_with_tokens(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(AGUI_AGENT="assistant", AGUI_KEEPALIVE="0.2"))
    with start_session(channel, max_context_tokens=5000) as talk:
        talk.say("hello")
        wait_for_turn(talk)
        beat = talk.until("keepalive")
        assert 0 < beat.tokens_used < beat.tokens_max == 5000


@requirement("roz.control")
def test_keepalives_have_the_requested_budget_from_the_start_and_the_tokens_of_a_turn_that_waits(
    servers: Servers, dial: Dial
) -> None:
    channel = dial(servers(**ASSISTANT, AGUI_KEEPALIVE="0.2"))
    with start_session(channel, max_context_tokens=5000) as talk:
        assert talk.until("keepalive") == pb.Keepalive(tokens_used=0, tokens_max=5000)
        talk.say(call_text("pay", amount=1))
        wait_for_approval(talk)
        beat = talk.until("keepalive")
        assert 0 < beat.tokens_used < beat.tokens_max == 5000
    with start_session(channel) as talk:
        assert not talk.until("keepalive").HasField("tokens_max")
        talk.say(call_text("pay", amount=1))
        wait_for_approval(talk)
        assert talk.until("keepalive").tokens_used > 0


@requirement("roz.control")
def test_feedback_is_kept_with_the_answer(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        session = talk.all("session_started")[0].session_id
        talk.say("hello", message_id="m1")
        wait_for_turn(talk)
        talk.send(feedback=pb.MessageFeedback(session_id=session, message_id="m1", rating="positive"))
        talk.send(feedback=pb.MessageFeedback(session_id=session, message_id="m1", rating="so-so"))
        assert "rating" in talk.until("error").message
        talk.send(feedback=pb.MessageFeedback(session_id=session, message_id="m9", rating="negative"))
        assert talk.until("error").code in {"VALIDATION_ERROR", "THREAD_NOT_FOUND"}


@requirement("roz.control")
def test_a_message_during_a_turn_is_refused_or_waits(servers: Servers, dial: Dial, channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("wait 0.5", message_id="m1")
        talk.say("hello", message_id="m2")
        error = talk.until("error")
        assert (error.code, error.retryable) == ("THREAD_BUSY", True)
        assert wait_for_turn(talk).message_id == "m1"
    with start_session(dial(servers(**ASSISTANT, AGUI_ON_BUSY="enqueue"))) as talk:
        talk.say("wait 0.5", message_id="m1").say("hello", message_id="m2")
        assert [wait_for_turn(talk).message_id, wait_for_turn(talk).message_id] == ["m1", "m2"]
    with start_session(dial(servers(**ASSISTANT, AGUI_ON_BUSY="interrupt"))) as talk:
        talk.say("wait 30", message_id="m1")
        talk.until("text_delta")
        talk.say("hello", message_id="m2")
        assert [wait_for_turn(talk).stop_reason, wait_for_turn(talk).stop_reason] == ["cancelled", "end_turn"]


@requirement("roz.control")
def test_of_messages_that_interrupt_one_another_the_last_is_answered_and_all_are_kept(
    servers: Servers, dial: Dial
) -> None:
    server = servers(**ASSISTANT, AGUI_ON_BUSY="interrupt")
    with start_session(dial(server)) as talk:
        talk.say("wait 30", message_id="m1")
        talk.until("text_delta")
        talk.say("wait 31", message_id="m2").say("wait 32", message_id="m3").say("hello", message_id="m4")
        turns = [wait_for_turn(talk) for _ in range(4)]
        assert [turn.message_id for turn in turns] == ["m1", "m2", "m3", "m4"]
        assert [turn.stop_reason for turn in turns] == ["cancelled", "cancelled", "cancelled", "end_turn"]
        messages = get_json(server, f"/threads/{session_of(talk)}")["messages"]
        said = [message["content"] for message in messages if message["role"] == "user"]
        assert said == ["wait 30", "wait 31", "wait 32", "hello"]


# --- the start --------------------------------------------------------------------------------------------------------


def part(**fields: Any) -> pb.ContentPart:
    return pb.ContentPart(**fields)


@requirement("roz.start")
def test_a_history_is_resumed(channel: grpc.Channel) -> None:
    use = pb.ToolUseContent(id="c1", name="move")
    use.input.update({"x": 1})
    history = [
        pb.ConversationMessage(role="user", parts=[part(text=pb.TextContent(text="please move"))]),
        pb.ConversationMessage(
            role="assistant",
            parts=[
                part(thinking=pb.ThinkingContent(thinking="why not", signature="sig")),
                part(text=pb.TextContent(text="I move")),
                part(tool_use=use),
            ],
        ),
        pb.ConversationMessage(
            role="user",
            parts=[part(tool_result=pb.ToolResultContent(tool_use_id="c1", name="move", content="moved"))],
        ),
        pb.ConversationMessage(role="assistant", parts=[part(text=pb.TextContent(text="done"))]),
    ]
    with start_session(channel, history=history) as talk, start_session(channel) as bare:
        talk.say("hello")
        bare.say("hello")
        with_history, without = wait_for_turn(talk), wait_for_turn(bare)
        assert with_history.usage.input_tokens == without.usage.input_tokens + 8
        summary = next(event.resume_summary for event in talk.all("session_event") if event.HasField("resume_summary"))
        assert MessageToDict(summary.summary) == {"messages": 5.0}
        talk.say("again")
        assert wait_for_turn(talk).usage.input_tokens > with_history.usage.input_tokens


@requirement("roz.start")
def test_a_history_for_a_thread_with_messages_is_refused_and_the_messages_stay(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    history = [pb.ConversationMessage(role="user", parts=[part(text=pb.TextContent(text="earlier"))])]
    with start_session(channel, history=history) as talk:
        thread = session_of(talk)
        talk.say("stream 1")
        wait_for_turn(talk)
    before = get_json(server, f"/threads/{thread}")["messages"]
    with RozTalk(channel, metadata=[("agui-thread-id", thread)]) as again:
        again.send(start=pb.StartSession(history=history))
        assert "history: must be empty" in again.until("error").message
        again.send(start=pb.StartSession()).until("session_started")
        again.say("stream 2")
        wait_for_turn(again)
    after = get_json(server, f"/threads/{thread}")["messages"]
    assert (after[: len(before)], len(after)) == (before, len(before) + 2)


@requirement("roz.start")
def test_of_two_sessions_with_histories_for_one_new_thread_the_second_one_is_refused(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    metadata = [("agui-thread-id", "begun-twice")]
    first, second = (
        [pb.ConversationMessage(role="user", parts=[part(text=pb.TextContent(text=text))])] for text in ("one", "two")
    )
    with start_session(channel, metadata, history=first) as talk, RozTalk(channel, metadata=metadata) as late:
        late.send(start=pb.StartSession(history=second))
        assert "history: must be empty" in late.until("error").message
        talk.say("stream 1")
        wait_for_turn(talk)
    texts = [message["content"] for message in get_json(server, "/threads/begun-twice")["messages"]]
    assert texts[:2] == ["one", "stream 1"]


@requirement("roz.start")
def test_a_turn_with_a_history_is_refused_if_another_client_has_begun_its_thread(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    history = [pb.ConversationMessage(role="user", parts=[part(text=pb.TextContent(text="earlier"))])]
    with start_session(channel, [("agui-thread-id", "begun-over-sse")], history=history) as talk:
        message = {"id": "u1", "role": "user", "content": "stream 1"}
        run_over_sse(server, {"threadId": "begun-over-sse", "runId": "w1", "messages": [message]})
        before = get_json(server, "/threads/begun-over-sse")["messages"]
        talk.say("stream 2")
        assert "the thread has messages" in talk.until("error").message
        assert wait_for_turn(talk).stop_reason == "error"
    assert get_json(server, "/threads/begun-over-sse")["messages"] == before


@requirement("roz.start")
def test_project_and_turn_context_reach_the_model(channel: grpc.Channel) -> None:
    def used(**fields: Any) -> int:
        turn = {name: fields.pop(name) for name in ("system_context", "context") if name in fields}
        with start_session(channel, **fields) as talk:
            talk.say("hello", **turn)
            return int(wait_for_turn(talk).usage.input_tokens)

    bare = used()
    assert used(project_context=["one two three"]) >= bare + 3
    assert used(system_context="one two three") >= bare + 3
    block = pb.ContentBlock(text="one two three", label="notes")
    assert used(context=[block]) >= bare + 3
    picture = pb.ContentBlock(binary=pb.BinaryContent(mime_type="image/png", data=b"\x89PNG"))
    assert used(context=[picture]) == bare


@requirement("roz.start")
def test_a_model_that_may_not_be_chosen_is_refused_with_the_names_that_may(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(**ASSISTANT, AGUI_MODELS="small=offline"))
    with start_session(channel, model="small") as talk:
        assert talk.all("session_started")[0].model == "small"
    with RozTalk(channel) as talk:
        talk.send(start=pb.StartSession(model="huge"))
        error = talk.until("error")
        assert error.code == "VALIDATION_ERROR"
        assert "small" in error.message
        talk.send(start=pb.StartSession())
        talk.until("session_started")


@requirement("roz.start")
def test_a_small_context_is_compacted_and_told(old_channel: grpc.Channel) -> None:
    words = "word " * 60
    with start_session(old_channel, max_context_tokens=300) as talk:
        for number in range(6):
            talk.say(f"{number} {words}")
            wait_for_turn(talk)
        compacted = talk.all("context_compacted")[0]
        assert (compacted.level, compacted.HasField("summary")) == ("summary", False)
        assert compacted.tokens_after < compacted.tokens_before
        assert compacted.messages_after < compacted.messages_before


@requirement("roz.answers")
def test_the_summary_of_removed_turns_comes_with_the_compaction(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(**ASSISTANT, AGUI_CONTEXT_TOKENS="300", AGUI_CONTEXT_OVERFLOW="summarise"))
    with start_session(channel) as talk:
        while not talk.all("context_compacted"):
            talk.say("stream 40")
            wait_for_turn(talk)
        compacted = talk.all("context_compacted")[0]
        assert compacted.level == "summary"
        assert compacted.summary
        assert "left out" not in compacted.summary, "the model's mark is not a part of the summary"


@requirement("roz.answers")
def test_a_client_of_release_1_0_is_told_of_a_compaction_and_of_the_end_of_the_server(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT, AGUI_ROZ_WIRE="1.0") as server, RozTalk(dial(server)) as talk:
        talk.send(start=pb.StartSession(max_context_tokens=300))
        for number in range(6):
            talk.say(f"{number} " + "word " * 60)
            talk.until("1.0 turn_finished")
        compacted = next(it.session_event.context_compacted for it in talk.seen if "context_compacted" in talk.kind(it))
        assert (compacted.level, compacted.messages_affected > 0) == ("summary", True)
        assert compacted.tokens_after < compacted.tokens_before
        server.term()
        assert talk.until("1.0 session_failed").failure == "SHUTTING_DOWN"
        with pytest.raises(grpc.RpcError):
            list(talk.rest())


@requirement("roz.start")
def test_a_mode_that_no_agent_has_is_refused(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("hello", ai_mode="dream", message_id="m1")
        assert "dream" in talk.until("error").message
        assert talk.until("turn_complete") == pb.TurnComplete(message_id="m1", usage={}, stop_reason="error")
        talk.say("hello", ai_mode="ooda_re_act")
        assert wait_for_turn(talk).stop_reason == "end_turn"
        talk.say("hello", ai_mode="react")
        assert wait_for_turn(talk).stop_reason == "end_turn"


@requirement("roz.control")
@pytest.mark.parametrize(
    "message",
    [
        {"message_id": "x" * 513},
        {"message_id": "m1", "tools": [pb.ToolSchema()]},
        {"message_id": "m1", "context": [pb.ContentBlock(text="x")] * 4_001},
        {"message_id": "m1", "ai_mode": "dream"},
    ],
)
def test_the_turn_of_a_refused_message_is_completed(channel: grpc.Channel, message: dict[str, Any]) -> None:
    with start_session(channel) as talk:
        talk.say("hello", **message)
        talk.until("error")
        complete = talk.until("turn_complete")
        assert (complete.message_id, complete.stop_reason) == (message["message_id"], "error")
        assert talk.until("1.0 turn_finished").message_id == message["message_id"]
        rejected = [it for it in talk.all("session_event") if it.HasField("session_rejected")]
        assert [it.correlation_id for it in rejected] == [message["message_id"]]
        talk.say("hello")
        assert wait_for_turn(talk).stop_reason == "end_turn"


@requirement("roz.control")
def test_the_turn_of_a_message_that_comes_too_early_is_completed_after_the_turn_of_the_first(
    channel: grpc.Channel,
) -> None:
    with start_session(channel) as talk:
        talk.say("wait 0.5", message_id="m1")
        talk.until("text_delta")
        talk.say("hello", message_id="m2")
        assert [talk.until("turn_complete").message_id for _ in range(2)] == ["m1", "m2"]


@requirement("roz.start")
def test_requests_out_of_order_are_refused_and_the_session_can_begin(channel: grpc.Channel) -> None:
    with RozTalk(channel) as talk:
        for request in (
            {"user_message": pb.UserMessage(content="hello")},
            {"tool_result": pb.ToolResult(tool_call_id="x")},
            {"permission_decision": pb.PermissionDecision(tool_call_id="x")},
            {"register_tools": pb.RegisterTools(source="x")},
            {"cancel_turn": pb.CancelTurn()},
            {"feedback": pb.MessageFeedback()},
        ):
            talk.send(**request)
            assert talk.until("error").code == "VALIDATION_ERROR"
        talk.send(start=pb.StartSession())
        talk.until("session_started")
        talk.send(start=pb.StartSession())
        assert "begun already" in talk.until("error").message
        talk.send(tool_result=pb.ToolResult(tool_call_id="x"))
        assert talk.until("error").code == "VALIDATION_ERROR"


@requirement("roz.start")
def test_messages_of_robots_are_ignored(channel: grpc.Channel) -> None:
    with start_session(
        channel, camera_ids=["front"], enable_video=True, agent_placement=pb.AGENT_PLACEMENT_EDGE
    ) as talk:
        talk.send(webrtc_answer=pb.WebRtcAnswer(sdp="x"))
        talk.send(ice_candidate=pb.IceCandidate(candidate="x"))
        talk.send(camera_request=pb.CameraRequest(camera_ids=["front"]))
        talk.say("hello")
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert talk.all("error") == []


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
