"""Control of a session of roz: cancels, keepalives, feedback, and messages during a turn."""

import grpc
import pytest

from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.client import call_text
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.http_requests import get_json
from tests.grpc.roz_calls import RozTalk, schema, session_of, start_session, wait_for_approval, wait_for_turn
from tests.requirements import requirement
from tests.sockets.process import Servers


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
