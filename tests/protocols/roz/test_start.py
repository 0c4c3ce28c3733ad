"""The start of a session of roz: histories, contexts, models, modes, and requests out of order."""

from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.conftest import ASSISTANT, Dial
from tests.protocols.grpc.http_requests import get_json
from tests.protocols.roz.calls import RozTalk, session_of, start_session, wait_for_turn
from tests.server.sockets.process import ServerProcess, Servers

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def test_a_history_for_a_thread_with_messages_is_refused_and_the_messages_stay(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    part = pb.ContentPart(text=pb.TextContent(text="earlier"))
    history = [pb.ConversationMessage(role="user", parts=[part])]
    with start_session(channel, history=history) as talk:
        thread = session_of(talk)
        talk.say("stream 1")
        wait_for_turn(talk)
        summary = next(event.resume_summary for event in talk.all("session_event") if event.HasField("resume_summary"))
        assert MessageToDict(summary.summary) == {"messages": 1.0}
    before = get_json(server, f"/threads/{thread}")["messages"]
    with RozTalk(channel, metadata=[("agui-thread-id", thread)]) as again:
        again.send(start=pb.StartSession(history=history))
        assert "history: must be empty" in again.until("error").message
        again.send(start=pb.StartSession()).until("session_started")
        again.say("stream 2")
        wait_for_turn(again)
    after = get_json(server, f"/threads/{thread}")["messages"]
    assert (after[: len(before)], len(after)) == (before, len(before) + 2)


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


def test_a_client_of_release_1_0_is_told_of_a_compaction_and_of_the_end_of_the_server(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT) as server, RozTalk(dial(server)) as talk:
        talk.send(start=pb.StartSession(max_context_tokens=300))
        for number in range(6):
            talk.say(f"{number} " + "word " * 60)
            talk.until("1.0 turn_finished")
        compacted = next(
            it.session_event.context_compacted for it in talk.seen if talk.kind(it) == "1.0 context_compacted"
        )
        assert (compacted.level, compacted.messages_affected > 0) == ("summary", True)
        assert compacted.tokens_after < compacted.tokens_before
        server.term()
        assert talk.until("1.0 session_failed").failure == "SHUTTING_DOWN"
        with pytest.raises(grpc.RpcError):
            list(talk.rest())


@pytest.mark.parametrize(
    "message",
    [
        {"message_id": "m1", "tools": [pb.ToolSchema()]},
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
