"""The start of a session of roz: histories, contexts, models, modes, and requests out of order."""

from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.http_requests import get_json, run_over_sse
from tests.grpc.roz_calls import RozTalk, session_of, start_session, wait_for_turn
from tests.grpc.test_roz import old_channel
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, Servers

__all__ = ["old_channel"]


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
def test_of_two_sessions_with_histories_for_one_new_thread_the_first_turn_counts(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    metadata = [("agui-thread-id", "begun-twice")]
    first, second = (
        [pb.ConversationMessage(role="user", parts=[part(text=pb.TextContent(text=text))])] for text in ("one", "two")
    )
    with start_session(channel, metadata, history=first) as talk, RozTalk(channel, metadata=metadata) as late:
        late.send(start=pb.StartSession(history=second)).until("session_started")
        talk.say("stream 1")
        wait_for_turn(talk)
        late.say("stream 2")
        assert "the thread has messages" in late.until("error").message
        assert wait_for_turn(late).stop_reason == "error"
    texts = [message["content"] for message in get_json(server, "/threads/begun-twice")["messages"]]
    assert (texts[:2], len(texts)) == (["one", "stream 1"], 3)


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
        assert "'dream' is not a mode of this agent; known are react, ooda_re_act." in talk.until("error").message
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
