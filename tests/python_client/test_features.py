"""Features of the protocol and of this server: goals, state, files, tokens, deltas, limits of time, open threads."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from ag_ui.core import BaseEvent, CustomEvent, TextMessageContentEvent, UserMessage
from pydantic import BaseModel

from agui_client import (
    ClientToolResult,
    Goal,
    GoalsFailed,
    GoalStatus,
    Interrupt,
    Outcome,
    RunRefusedError,
    Session,
    SessionStatus,
    attachment,
    client_tool,
    new_session_id,
)
from tests.python_client.conftest import TRANSPORTS, url_of
from tests.python_client.relay import relay_to
from tests.sockets.process import ServerProcess

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


class TeaAmount(BaseModel):
    """An amount of money."""

    amount: float


async def test_goals_are_declared_and_bring_their_data(url: str) -> None:
    goals = [Goal("price", TeaAmount, "What it costs."), Goal("greeting", {"type": "object"})]
    async with Session.start('call achieve_price {"amount": 2.5}', url=url, goals=goals) as session:
        await session.run()
        found = {goal.type: (goal.status, goal.data) for goal in session.goals}
        assert found == {
            "price": (GoalStatus.ACHIEVED, {"amount": 2.5}),
            "greeting": (GoalStatus.ACHIEVED, {}),
        }
        other = await Session.from_id(session.thread_id, url=url)
        assert {goal.type: (goal.status, goal.data) for goal in other.goals} == found
        await other.aclose()
        await session.send_text("hello").run()
        assert session.goals == []


async def test_goals_that_fail_are_raised(url: str) -> None:
    async with Session.start(url=url, goals=[Goal("price", TeaAmount)]) as session:
        with pytest.raises(GoalsFailed) as caught:
            await session.run()
        assert (caught.value.thread_id, caught.value.goals) == (session.thread_id, ("price",))
        assert session.status is SessionStatus.GOALS_FAILED


async def test_events_leave_client_tools_to_the_caller(url: str) -> None:
    @client_tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        raise AssertionError(city)

    async with Session.start('call get_weather {"city": "Rome"}', url=url, client_tools=[get_weather]) as session:
        async for _ in session.events():
            pass
        assert session.status is SessionStatus.CLIENT_TOOL_TURN
        other = await Session.from_id(session.thread_id, url=url, client_tools=[get_weather])
        assert other.status is SessionStatus.CLIENT_TOOL_TURN
        assert other.pending_calls == session.pending_calls
        await other.aclose()
        (call,) = session.pending_calls
        result = ClientToolResult(tool_call_id=call.id, tool_name="get_weather", output="hot")
        async for _ in session.submit_client_tool_results([result]).events():
            pass
    assert session.messages[-1].content == "The result of get_weather is hot."


async def test_a_cancel_stops_a_turn_that_waits_for_client_tools(url: str) -> None:
    begun = asyncio.Event()

    @client_tool
    async def hang() -> None:
        """Hang."""
        begun.set()
        await asyncio.Event().wait()

    async with Session.start("call hang {}", url=url, client_tools=[hang]) as session:
        running = asyncio.create_task(session.run())
        await begun.wait()
        await session.cancel()
        await running
        assert (session.outcome, session.status) == (Outcome.CANCELLED, SessionStatus.CLIENT_TOOL_TURN)
        await session.send_text("calculate 1+1").run()
        assert session.messages[-1].content == "The result of calculate is 2."


async def test_a_question_that_was_answered_elsewhere_no_longer_waits(url: str) -> None:
    async with Session.start("what time is it", url=url) as session:
        await session.run()
        await session.refresh()
        assert len(session.interrupts) == 1
        async with await Session.from_id(session.thread_id, url=url) as other:
            await other.run(on_approval=lambda approval: approval.deny())
        await session.refresh()
        assert session.interrupts == []
        assert session.messages == other.messages


async def test_a_withdrawn_tool_is_not_offered(url: str) -> None:
    @client_tool
    def get_weather() -> str:
        """The weather."""
        return "hot"

    async with Session(url, client_tools=[get_weather]) as session:
        assert session.unregister_client_tool("get_weather")
        await session.send_text("call get_weather {}").run()
        assert "There is no tool" in str(session.messages[-1].content) or "no tool" in str(session.transcript)
        await session.register_client_tool(get_weather).send_text("call get_weather {}").run()
        assert session.messages[-1].content == "The result of get_weather is hot."


async def test_files_are_sent_as_content_parts(url: str, tmp_path: Path) -> None:
    (tmp_path / "page.pdf").write_bytes(b"%PDF-1.7")
    async with Session(url) as session:
        await session.send_text("look", files=[PNG, tmp_path / "page.pdf"]).run()
        kept = await Session.from_id(session.thread_id, url=url)
        await kept.aclose()
    message = kept.messages[0]
    assert isinstance(message, UserMessage)
    assert [part.type for part in message.content if not isinstance(part, str)] == ["text", "image", "document"]
    with pytest.raises(ValueError, match="mime_type"):
        attachment(b"?")
    assert attachment(b"?", "audio/wav").type == "audio"


async def test_refresh_takes_over_what_another_session_did(url: str) -> None:
    async with Session.start("calculate 1+1", url=url) as session:
        await session.run()
        await session.refresh()
        async with await Session.from_id(session.thread_id, url=url) as other:
            await other.rename("Sums")
            await other.send_text("calculate 2+2").run()
            await session.refresh()
            assert session.messages == other.messages
        assert session.title == "Sums"


async def test_the_open_run_of_a_thread_is_followed(url: str) -> None:
    async with Session.start("wait 600", url=url) as session:
        async for event in session.events():
            if isinstance(event, TextMessageContentEvent):
                async with await Session.from_id(session.thread_id, url=url) as other:
                    assert other.status is SessionStatus.AGENT_TURN
                    await asyncio.gather(other.cancel(), other.run())
                    assert other.outcome is Outcome.CANCELLED
    assert session.outcome is Outcome.CANCELLED


async def test_a_session_without_its_messages_adds_to_the_thread(url: str) -> None:
    async with Session.start("calculate 1+1", url=url) as session:
        await session.run()
        async with await Session.from_id(session.thread_id, url=url, load_messages=False) as other:
            assert other.messages == []
            await other.send_text("calculate 2+2").run()
        await session.refresh()
        assert [message.role for message in session.messages].count("user") == 2


async def test_a_thread_that_does_not_exist_is_refused(url: str) -> None:
    with pytest.raises(RunRefusedError) as caught:
        await Session.from_id("nowhere", url=url)
    assert caught.value.code == "THREAD_NOT_FOUND"
    assert caught.value.request_id


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_connection_gets_a_fresh_token_and_the_session_id(server: ServerProcess, transport: str) -> None:
    tokens = iter(f"token-{number}" for number in range(100))
    session_id = new_session_id()

    async def renew() -> str:
        return next(tokens)

    async with relay_to(server.port) as relay:
        url = relay.http if transport == "sse" else relay.ws
        options = {"token": renew, "session_id": session_id, "headers": {"X-Mine": "1"}}
        async with Session.start("think about rain", url=url, **options) as session:  # type: ignore[arg-type]
            relay.cuts = [2]
            await session.run()
    heads = [head.lower() for head in relay.heads]
    sent = [head.partition("authorization: bearer ")[2].partition("\r\n")[0] for head in heads]
    assert sent == [f"token-{number}" for number in range(len(heads))]
    assert len(heads) > 1
    assert all(session_id in head and "x-mine: 1" in head for head in heads)


@pytest.fixture(scope="module")
def stateful() -> Iterator[ServerProcess]:
    """A server whose agent changes the state."""
    with ServerProcess(AGUI_AGENT="examples.state_agent:agent") as running:
        yield running


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_state_goes_both_ways(stateful: ServerProcess, transport: str) -> None:
    async with Session(url_of(stateful, transport), state={"items": ["tea"]}) as session:
        await session.send_text('call add_item {"item": "milk"}').run()
        await session.send_text('call add_item {"item": "eggs"}').run()
        assert session.state == {"items": ["tea", "milk", "eggs"]}
        other = await Session.from_id(session.thread_id, url=url_of(stateful, transport))
        assert other.state == session.state
        await other.aclose()


@pytest.fixture(scope="module")
def asking() -> Iterator[ServerProcess]:
    """A server whose agent asks for a color before it answers."""
    with ServerProcess(AGUI_AGENT="tests.python_client.asking_agent:agent") as running:
        yield running


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_interrupt_is_answered_by_its_schema(asking: ServerProcess, transport: str) -> None:
    asked: list[Interrupt] = []

    class Color(BaseModel):
        name: str

    async def answer(interrupt: Interrupt) -> Color:
        asked.append(interrupt)
        return Color(name="green")

    async with Session.start("paint", url=url_of(asking, transport)) as session:
        await session.run(on_interrupt=answer, on_approval=lambda _: True)
        assert session.messages[-1].content == "resolved: {'name': 'green'}"
        await session.send_text("paint").run()
        await session.abandon(session.interrupts[0].id).run()
        assert session.messages[-1].content == "cancelled: None"
        with pytest.raises(ValueError, match="No interrupt"):
            session.answer("unknown", 1)
    (interrupt,) = asked
    assert (interrupt.response_schema or {})["required"] == ["name"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_events_outside_of_the_protocol_are_handed_on(asking: ServerProcess, transport: str) -> None:
    async with Session.start("custom", url=url_of(asking, transport)) as session:
        seen: list[BaseEvent] = [event async for event in session.events()]
    assert [event.value for event in seen if isinstance(event, CustomEvent)] == [{"a": [1, None]}]


async def test_a_refused_message_can_be_taken_back(url: str) -> None:
    async with Session(url, thread_id="t" * 2_000) as session:
        session.send_text("hello")
        with pytest.raises(RunRefusedError):
            await session.run()
        assert len(session.messages) == 1
        session.withdraw()
        assert (session.messages, session.status) == ([], SessionStatus.NOT_STARTED)


async def test_a_message_that_a_run_has_accepted_is_not_taken_back(url: str) -> None:
    async with Session.start("calculate 1+1", url=url) as session:
        await session.run()
        assert len(session.withdraw().messages) == 4
