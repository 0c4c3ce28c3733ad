"""Sessions of roz, as clients of release 0.2 (fields 1 to 11) and of 1.0 (``session_event``) see them."""

import pytest

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.clients import Clients
from tests.protocols.grpc.client import RozSession, call_text, schema

pytestmark = pytest.mark.wire


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a":' * 33 + "1" + "}" * 33, "the client cannot get the arguments"),
        ("{no", "the arguments are not valid JSON"),
    ],
)
async def test_a_call_whose_arguments_no_client_can_read_is_an_error_for_the_model(
    clients: Clients, arguments: str, reason: str
) -> None:
    session = await clients.start_session(tools=[schema("look")])
    assert f"failed: {reason}" in await session.ask(f"call look {arguments}")
    assert "tool_request" not in session.kinds
    calls = [kind for kind in session.events if kind.startswith("tool_call")]
    assert calls == ["tool_call_started", "tool_call_finished"]
    await session.say("hello")
    assert (await session.turn()).stop_reason == "end_turn"


async def requested(session: RozSession, *names: str) -> list[bool]:
    """Let the model call tools, and return which of them the client is asked to run."""
    asked = []
    for name in names:
        await session.say(call_text(name, x=1))
        kind, content = await session.next()
        while kind not in {"tool_request", "turn_complete"}:
            kind, content = await session.next()
        asked.append(kind == "tool_request")
        if asked[-1]:
            await session.give(content.tool_call_id, "ok")
            await session.turn()
    return asked


async def test_a_source_registers_replaces_and_removes_its_tools(clients: Clients) -> None:
    def register(*names: str, source: str = "sim") -> pb.RegisterTools:
        return pb.RegisterTools(source=source, tools=[schema(name) for name in names], system_context="Move slowly.")

    session = await clients.start_session(tools=[schema("base"), schema("sim__old")])
    await session.send(register_tools=register("sim__a", "sim__b"))
    assert await requested(session, "base", "sim__a", "sim__b", "sim__old") == [True, True, True, False]
    await session.send(register_tools=register("sim__b"))
    await session.send(register_tools=register("lab__c", source="lab"))
    assert await requested(session, "sim__a", "sim__b", "lab__c") == [False, True, True]
    await session.send(register_tools=register())
    assert await requested(session, "sim__b", "lab__c", "base") == [False, True, True]


async def test_a_turns_own_tools_replace_the_sessions_for_that_turn(clients: Clients) -> None:
    session = await clients.start_session(tools=[schema("base")])
    await session.say(call_text("special", x=1), tools=[schema("special", timeout_ms=5000)])
    request = await session.until("tool_request")
    assert (request.tool_name, request.timeout_ms) == ("special", 5000)
    await session.give(request.tool_call_id, "ok")
    await session.turn()
    assert await requested(session, "special", "base") == [False, True]


async def test_a_client_of_release_1_0_gets_everything_in_session_events(clients: Clients) -> None:
    session = await clients.start_session(tools=[schema("move")])
    (started,) = session.all("1.0 session_started")
    assert (started.mode, started.model_name) == ("react", "offline")
    assert ("wipe", "block") in [(rule.tool_pattern, rule.policy) for rule in started.permissions]
    await session.say(f"{call_text('pay', amount=3)}\n{call_text('move', x=2)}", message_id="m1")
    requested = await session.until("1.0 tool_call_requested")
    asked = await session.until("1.0 approval_requested")
    assert asked.action == "pay"
    assert asked.timeout_secs > 3000
    await session.decide(asked.approval_id, approved=True)
    await session.give(requested.call_id, "moved")
    finished = await session.until("1.0 turn_finished")
    assert (finished.message_id, finished.stop_reason) == ("m1", "end_turn")
    await session.ask("think about echo")
    await session.ask(call_text("echo", text="x"))
    await session.say("hello", ai_mode="dream", message_id="m9")
    assert (await session.until("1.0 session_rejected")).code == "VALIDATION_ERROR"
    assert (await session.until("1.0 turn_finished")).message_id == "m9"
    await session.send(cancel_session=pb.CancelSession())
    await session.rest()
    assert set(session.events) == {
        *("session_started", "turn_started", "model_call_completed", "tool_call_requested", "approval_requested"),
        *("approval_resolved", "tool_call_started", "tool_call_finished", "text_delta", "thinking_delta"),
        *("turn_finished", "session_rejected", "session_completed"),
    }
    events = [message.session_event for message in session.seen if message.HasField("session_event")]
    assert len({event.event_id for event in events}) == len(events)
    assert all(event.timestamp.seconds > 1_700_000_000 for event in events)
    assert {event.correlation_id for event in events if event.HasField("turn_finished")} > {"m1"}
