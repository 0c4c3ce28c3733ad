"""Control of a session of roz: cancels, keepalives, feedback, and messages during a turn."""

import pytest

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.clients import Clients, serving_clients

pytestmark = pytest.mark.wire


async def test_a_client_that_says_nothing_more_gets_its_answer(clients: Clients) -> None:
    session = await clients.start_session()
    await session.say("hello")
    await session.end()
    assert (await session.turn()).stop_reason == "end_turn"
    assert (await session.rest())[-1] == "1.0 session_completed"


async def test_silence_is_broken_by_keepalives_with_tokens() -> None:
    async with serving_clients(keepalive=0.2) as clients:
        session = await clients.start_session(max_context_tokens=5000)
        await session.ask("hello")
        beat = await session.until("keepalive")
        assert 0 < beat.tokens_used < beat.tokens_max == 5000


async def test_feedback_is_kept_with_the_answer(clients: Clients) -> None:
    session = await clients.start_session()
    await session.ask("hello", message_id="m1")
    for message_id, rating in (("m1", "positive"), ("m1", "so-so"), ("m9", "negative")):
        feedback = pb.MessageFeedback(session_id=session.thread, message_id=message_id, rating=rating)
        await session.send(feedback=feedback)
    assert "rating" in (await session.until("error")).message, "of the second one"
    assert (await session.until("error")).code in {"VALIDATION_ERROR", "THREAD_NOT_FOUND"}


async def test_a_message_during_a_turn_is_refused_or_waits() -> None:
    async with serving_clients() as clients:
        session = await clients.start_session()
        await session.say("wait 0.5", message_id="m1")
        await session.say("hello", message_id="m2")
        error = await session.until("error")
        assert (error.code, error.retryable) == ("THREAD_BUSY", True)
        assert (await session.turn()).message_id == "m1"
    async with serving_clients(on_busy="enqueue") as clients:
        session = await clients.start_session()
        await session.say("wait 0.5", message_id="m1")
        await session.say("hello", message_id="m2")
        assert [(await session.turn()).message_id for _ in range(2)] == ["m1", "m2"]


async def test_of_messages_that_interrupt_one_another_the_last_is_answered_and_all_are_kept() -> None:
    async with serving_clients(on_busy="interrupt") as clients:
        session = await clients.start_session()
        await session.say("wait 30", message_id="m1")
        await session.until("text_delta")
        texts = ["wait 30", "wait 31", "wait 32", "hello"]
        for number, text in enumerate(texts[1:], 2):
            await session.say(text, message_id=f"m{number}")
        turns = [await session.turn() for _ in texts]
        assert [turn.message_id for turn in turns] == ["m1", "m2", "m3", "m4"]
        assert [turn.stop_reason for turn in turns] == ["cancelled", "cancelled", "cancelled", "end_turn"]
        assert [content for role, content in await clients.messages(session.thread) if role == "user"] == texts
