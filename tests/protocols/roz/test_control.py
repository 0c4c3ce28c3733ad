"""Control of a session of roz: cancels, keepalives, feedback, and messages during a turn."""

import grpc
import pytest

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.conftest import ASSISTANT, Dial
from tests.protocols.grpc.http_requests import get_json
from tests.protocols.roz.calls import session_of, start_session, wait_for_turn
from tests.server.sockets.process import Servers

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def test_a_client_that_says_nothing_more_gets_its_answer(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("hello").end()
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert list(talk.rest())[-1] == "1.0 session_completed"


def test_silence_is_broken_by_keepalives_with_tokens(servers: Servers, dial: Dial) -> None:
    channel = dial(servers(AGUI_AGENT="assistant", AGUI_KEEPALIVE="0.2"))
    with start_session(channel, max_context_tokens=5000) as talk:
        talk.say("hello")
        wait_for_turn(talk)
        beat = talk.until("keepalive")
        assert 0 < beat.tokens_used < beat.tokens_max == 5000


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
