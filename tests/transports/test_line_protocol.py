"""The protocol of docs/add-a-protocol.md, against a server that has one line for it."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from google.protobuf.wrappers_pb2 import StringValue as Line
from grpclib.client import StreamStreamMethod

from agui_container import main
from agui_container.settings import Settings
from examples import line_protocol
from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.behaviour.over_grpc import ClientCall
from tests.behaviour.server import port_of, serving
from tests.docs.documents import GUIDES, ROOT
from tests.engine.doubles import ask
from tests.grpc.callers import connect_caller
from tests.requirements import requirement

PAGE = GUIDES["add-a-protocol"]
PAY = 'call pay {"amount": 5}'
ASKED = 'pay {"amount": 5}?'


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A server of the assistant with the protocol of the page besides the others."""
    others = main.grpc_protocols
    monkeypatch.setattr(main, "grpc_protocols", lambda settings: [*others(settings), line_protocol.register(settings)])
    app = main.build_app(Settings(agent="assistant", tools=TOOLS, tool_policy=POLICY))
    async with serving(app) as url:
        yield url


class Talk:
    """A call of a client."""

    def __init__(self, call: ClientCall[Line, Line]) -> None:
        self.call = call

    async def say(self, text: str) -> None:
        await self.call.send(Line(value=text))

    async def until(self, last: str) -> str:
        """Read until the text ends with this. Returns the text from the last read on."""
        text = ""
        while not text.endswith(last):
            message = await self.call.receive()
            assert message is not None, text
            text += message.value
        return text


@contextlib.asynccontextmanager
async def talking(url: str) -> AsyncIterator[Talk]:
    """Provide a call, which is dropped at the end."""
    async with AsyncExitStack() as closing:
        caller = connect_caller(port_of(url), "somebody", closing)
        talk = Talk(ClientCall(StreamStreamMethod(caller.channel, "/lines.Lines/Talk", Line, Line), {}))
        closing.push_async_callback(talk.call.close)
        yield talk


def test_the_page_shows_the_file_and_it_has_sixty_lines_at_most() -> None:
    (shown,) = [block.text for block in PAGE.blocks if block.language == "python"]
    file = Path(ROOT / "examples" / "line_protocol.py").read_text()
    assert shown.strip() == file.strip()
    assert len(file.splitlines()) <= 60


@requirement("protocol.added")
async def test_the_conversation_of_the_page_goes_as_it_says(url: str) -> None:
    (shown,) = [block.text for block in PAGE.blocks if block.language == "text"]
    async with talking(url) as talk:
        expected = ""
        for line in [*shown.strip().splitlines(), "> "]:
            if not line.startswith("> "):
                expected += line
                continue
            if expected:
                assert await talk.until(expected) == expected
            expected = ""
            if said := line.removeprefix("> "):
                await talk.say(said)


@requirement("protocol.added")
async def test_a_denied_call_is_not_run_and_the_next_question_is_answered(url: str) -> None:
    async with talking(url) as talk:
        await talk.say(PAY)
        await talk.until(ASKED)
        await talk.say("no")
        assert "denied" in await talk.until("Completed")
        await talk.say("hello")
        await talk.until("Completed")


@requirement("protocol.added")
async def test_a_cancel_ends_a_conversation_that_waits(url: str) -> None:
    async with talking(url) as talk:
        await talk.say(PAY)
        await talk.until(ASKED)
        await talk.say("cancel")
        await talk.until("Cancelled")


@requirement("protocol.added", "protocol.crossed")
async def test_an_answer_over_sse_is_followed(url: str) -> None:
    async with talking(url) as talk, httpx.AsyncClient(base_url=url) as http:
        await talk.say(PAY)
        await talk.until(ASKED)
        (thread,) = (await http.get("/threads")).json()["threads"]
        waiting = (await http.get(f"/threads/{thread['threadId']}")).json()["waiting"]
        resume = [{"interruptId": waiting[0]["id"], "status": "resolved", "payload": {"approved": True}}]
        await http.post("/invocations", json={**ask(thread["threadId"], "r9"), "messages": [], "resume": resume})
        assert "paid 5" in await talk.until("Completed")


@requirement("protocol.added")
async def test_a_client_that_leaves_leaves_its_run_to_the_policy(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        async with talking(url) as talk:
            await talk.say(PAY)
            await talk.until(ASKED)
        (thread,) = (await http.get("/threads")).json()["threads"]
        waiting = (await http.get(f"/threads/{thread['threadId']}")).json()["waiting"]
        assert waiting, "its approval stays open for any other client"
