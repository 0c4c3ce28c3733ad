"""The protocol of docs/add-a-protocol.md, against a server that has one line for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection

from agui_container import main
from agui_container.settings import Settings
from examples import line_protocol
from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.behaviour.server import serving
from tests.docs.documents import GUIDES, ROOT
from tests.engine.doubles import WAIT, Json, ask
from tests.requirements import requirement
from tests.websocket import send, socket_to

PAGE = GUIDES["add-a-protocol"]
PAY = 'call pay {"amount": 5}'


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A server of the assistant with the protocol of the page besides the others."""
    others = main.http_protocols
    monkeypatch.setattr(main, "http_protocols", lambda settings: [*others(settings), line_protocol.register(settings)])
    app = main.build_app(Settings(agent="assistant", tools=TOOLS, tool_policy=POLICY))
    async with serving(app) as url:
        yield url


async def receive(socket: ClientConnection) -> Json:
    """Return the next line."""
    async with asyncio.timeout(WAIT):
        line: Json = json.loads(await socket.recv())
    return line


async def until(socket: ClientConnection, *kinds: str) -> list[Json]:
    """Read up to a line of one of these kinds. Adjacent texts are joined."""
    lines: list[Json] = []
    while not lines or not lines[-1].keys() & {*kinds}:
        line = await receive(socket)
        if lines and "text" in line and "text" in lines[-1]:
            lines[-1]["text"] += line["text"]
        else:
            lines.append(line)
    return lines


def test_the_page_shows_the_file() -> None:
    (shown,) = [block.text for block in PAGE.blocks if block.language == "python"]
    assert shown.strip() == Path(ROOT / "examples" / "line_protocol.py").read_text().strip()


@requirement("protocol.added")
async def test_the_conversation_of_the_page_goes_as_it_says(url: str) -> None:
    (shown,) = [block.text for block in PAGE.blocks if block.language == "text"]
    async with socket_to(url, "/lines") as socket:
        expected: list[Json] = []
        for line in [*shown.strip().splitlines(), ">"]:
            if not line.startswith(">"):
                expected.append(json.loads(line))
                continue
            if expected:
                assert await until(socket, *expected[-1]) == expected
            expected = []
            if line != ">":
                await send(socket, json.loads(line.removeprefix(">")))


@requirement("protocol.added")
async def test_a_denied_call_is_not_run_and_the_next_question_is_answered(url: str) -> None:
    async with socket_to(url, "/lines") as socket:
        await send(socket, {"say": PAY})
        await until(socket, "ask")
        await send(socket, {"approve": False})
        lines = await until(socket, "end")
        assert "denied" in lines[0]["text"]
        await send(socket, {"say": "hello"})
        assert (await until(socket, "end"))[-1] == {"end": "completed"}


@requirement("protocol.added")
async def test_a_cancel_ends_a_conversation_that_waits(url: str) -> None:
    async with socket_to(url, "/lines") as socket:
        await send(socket, {"say": PAY})
        await until(socket, "ask")
        await send(socket, {"cancel": True})
        assert (await until(socket, "end"))[-1] == {"end": "cancelled"}


@requirement("protocol.added")
async def test_a_request_that_cannot_be_read_fails_and_names_its_field(url: str) -> None:
    async with socket_to(url, "/lines") as socket:
        await send(socket, {"say": 1})
        assert await receive(socket) == {"end": "failed", "error": "say: expected a text."}


@requirement("protocol.added", "protocol.crossed")
async def test_an_answer_over_sse_is_followed(url: str) -> None:
    async with socket_to(url, "/lines") as socket, httpx.AsyncClient(base_url=url) as http:
        await send(socket, {"say": PAY})
        await until(socket, "ask")
        (thread,) = (await http.get("/threads")).json()["threads"]
        waiting = (await http.get(f"/threads/{thread['threadId']}")).json()["waiting"]
        resume = [{"interruptId": waiting[0]["id"], "status": "resolved", "payload": {"approved": True}}]
        await http.post("/invocations", json={**ask(thread["threadId"], "r9"), "messages": [], "resume": resume})
        lines = await until(socket, "end")
        assert "paid 5" in lines[0]["text"]


@requirement("protocol.added")
async def test_a_client_that_leaves_leaves_its_run_to_the_policy(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        async with socket_to(url, "/lines") as socket:
            await send(socket, {"say": PAY})
            await until(socket, "ask")

        async def is_waiting() -> bool:
            (thread,) = (await http.get("/threads")).json()["threads"]
            return bool((await http.get(f"/threads/{thread['threadId']}")).json()["waiting"])

        assert await is_waiting(), "its approval stays open for any other client"
