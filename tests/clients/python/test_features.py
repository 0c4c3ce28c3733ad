"""Features of the protocol and of this server: state, files, tokens, deltas, limits of time, open threads."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from agui_client import (
    DECLINE,
    ClientToolResult,
    Declined,
    Interrupt,
    Outcome,
    RunRefusedError,
    Session,
    SessionStatus,
    attachment,
    client_tool,
    new_session_id,
)
from tests.clients.python.conftest import TRANSPORTS, url_of
from tests.relay import relay_to
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


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


async def test_files_are_parts_of_their_message_and_large_ones_are_uploaded_once(url: str, tmp_path: Path) -> None:
    (tmp_path / "page.pdf").write_bytes(b"%PDF" + bytes(70_000))
    async with Session(url) as session:
        with pytest.raises(RunRefusedError, match=r"larger|more than"):
            await session.send_text("look", files=[b"%PDF-" + bytes(8_000_000)]).run()
        assert len(session.messages) == 1
        session.withdraw()
        assert (session.messages, session.status) == ([], SessionStatus.NOT_STARTED)
        await session.send_text("look", files=[PNG, tmp_path / "page.pdf"]).run()
        await session.refresh()
        _, inline, named = session.messages[0].model_dump()["content"]
        assert [(each["type"], each["source"]["type"]) for each in (inline, named)] == [
            ("image", "data"),
            ("document", "file"),
        ]
        stored = await session.command("files.get", fileId=named["source"]["value"])
        assert (stored["name"], stored["mimeType"], stored["bytes"]) == ("page.pdf", "application/pdf", 70_004)
    with ServerProcess(AGUI_FILES="off") as without:
        async with Session(without.invocations) as session:
            await session.send_text("look", files=[tmp_path / "page.pdf"]).run()
            assert session.messages[0].model_dump()["content"][1]["source"]["type"] == "data"
    with pytest.raises(ValueError, match="mime_type"):
        attachment(b"?")
    assert attachment(b"?", "audio/wav").type == "audio"


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
    with ServerProcess(AGUI_AGENT="tests.web.console.scripted:agent") as running:
        yield running


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_interrupt_is_answered_by_its_schema(asking: ServerProcess, transport: str) -> None:
    asked: list[Interrupt] = []

    class Order(BaseModel):
        city: str

    async def answer(interrupt: Interrupt) -> Order:
        asked.append(interrupt)
        return Order(city="Rome")

    async with Session.start("ask", url=url_of(asking, transport)) as session:
        await session.run(on_interrupt=answer, on_approval=lambda _: True)
        assert session.messages[-1].content == "You answered: {'city': 'Rome'}"
        await session.send_text("ask").run()
        await session.abandon(session.interrupts[0].id).run()
        assert session.messages[-1].content == "Nothing was sent: cancelled."
        with pytest.raises(ValueError, match="No interrupt"):
            session.answer("unknown", 1)
    (interrupt,) = asked
    assert (interrupt.response_schema or {})["required"] == ["city", "speed", "address"]


@pytest.fixture(scope="module")
def with_mcp() -> Iterator[ServerProcess]:
    server = {"name": "shop", "command": sys.executable, "args": ["tests/tools/mcp_process.py"]}
    with ServerProcess(AGUI_AGENT="assistant", AGUI_MCP_SERVERS=json.dumps([server])) as running:
        yield running


@pytest.mark.parametrize(("answer", "read"), [({"size": 3}, "3"), (DECLINE, "decline"), (None, "cancel")])
async def test_an_mcp_server_reads_the_answer_to_its_question(
    with_mcp: ServerProcess, answer: object, read: str
) -> None:
    def reply(interrupt: Interrupt) -> object:
        assert (interrupt.reason, interrupt.message) == ("elicitation", "Which size?")
        if answer is None:
            raise Declined
        return answer

    async with Session.start("call shop_ask", url=with_mcp.invocations) as session:
        await session.run(on_interrupt=reply, on_approval=lambda _: False)
        assert session.messages[-1].content == f"The result of shop_ask is {read}."
