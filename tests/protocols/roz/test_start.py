"""The start of a session of roz: histories, contexts, models, modes, and requests out of order."""

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.clients import Clients, serving_clients

pytestmark = pytest.mark.wire


async def test_a_history_for_a_thread_with_messages_is_refused_and_the_messages_stay(clients: Clients) -> None:
    part = pb.ContentPart(text=pb.TextContent(text="earlier"))
    history = [pb.ConversationMessage(role="user", parts=[part])]
    session = await clients.start_session(history=history)
    await session.ask("stream 1")
    (summary,) = session.all("1.0 resume_summary")
    assert MessageToDict(summary.summary) == {"messages": 1.0}
    before = await clients.messages(session.thread)
    again = clients.new_session(session.thread)
    await again.send(start=pb.StartSession(history=history))
    assert "history: must be empty" in (await again.until("error")).message
    await again.begin()
    await again.ask("stream 2")
    after = await clients.messages(session.thread)
    assert (after[: len(before)], len(after)) == (before, len(before) + 2)


async def test_a_model_that_may_not_be_chosen_is_refused_with_the_names_that_may() -> None:
    async with serving_clients(models=["small=offline"]) as clients:
        session = await clients.start_session(model="small")
        assert session.all("session_started")[0].model == "small"
        session = clients.new_session()
        await session.send(start=pb.StartSession(model="huge"))
        error = await session.until("error")
        assert (error.code, "small" in error.message) == ("VALIDATION_ERROR", True)
        await session.begin()


async def test_a_client_of_release_1_0_is_told_of_a_compaction(clients: Clients) -> None:
    session = await clients.start_session(max_context_tokens=300)
    for number in range(6):
        await session.ask(f"{number} " + "word " * 60)
    compacted = session.all("1.0 context_compacted")[0]
    assert (compacted.level, compacted.messages_affected > 0) == ("summary", True)
    assert compacted.tokens_after < compacted.tokens_before


@pytest.mark.parametrize(
    "message",
    [
        {"message_id": "m1", "tools": [pb.ToolSchema()]},
        {"message_id": "m1", "ai_mode": "dream"},
    ],
)
async def test_the_turn_of_a_refused_message_is_completed(clients: Clients, message: dict[str, Any]) -> None:
    session = await clients.start_session()
    await session.say("hello", **message)
    await session.until("error")
    complete = await session.until("turn_complete")
    assert (complete.message_id, complete.stop_reason) == (message["message_id"], "error")
    assert (await session.until("1.0 turn_finished")).message_id == message["message_id"]
    rejected = [it.session_event for it in session.seen if it.session_event.HasField("session_rejected")]
    assert [it.correlation_id for it in rejected] == [message["message_id"]]
    await session.say("hello")
    assert (await session.turn()).stop_reason == "end_turn"


async def test_requests_out_of_order_are_refused_and_the_session_can_begin(clients: Clients) -> None:
    session = clients.new_session()
    for request in (
        {"user_message": pb.UserMessage(content="hello")},
        {"tool_result": pb.ToolResult(tool_call_id="x")},
        {"permission_decision": pb.PermissionDecision(tool_call_id="x")},
        {"register_tools": pb.RegisterTools(source="x")},
        {"cancel_turn": pb.CancelTurn()},
        {"feedback": pb.MessageFeedback()},
    ):
        await session.send(**request)
        assert (await session.until("error")).code == "VALIDATION_ERROR"
    await session.begin()
    await session.send(start=pb.StartSession())
    assert "begun already" in (await session.until("error")).message
    await session.give("x", "result")
    assert (await session.until("error")).code == "VALIDATION_ERROR"
