"""The protocol of docs/add-a-protocol.md, against a server that has one line for it."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from google.protobuf.wrappers_pb2 import StringValue as Line

from agui_container import main
from agui_container.settings import Settings
from examples import line_protocol
from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.behaviour.server import port_of, serving
from tests.docs.documents import GUIDES
from tests.protocols.grpc.client import GrpcCall, client_of

PAGE = GUIDES["add-a-protocol"]


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A server of the assistant with the protocol of the page besides the others."""
    others = main.grpc_protocols
    monkeypatch.setattr(main, "grpc_protocols", lambda settings: [*others(settings), line_protocol.register(settings)])
    app = main.build_app(Settings(agent="assistant", tools=TOOLS, tool_policy=POLICY))
    async with serving(app) as url:
        yield url


class Talk:
    def __init__(self, call: GrpcCall[Line, Line]) -> None:
        self.call = call

    async def say(self, text: str) -> None:
        await self.call.send(value=text)

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
    async with client_of(port_of(url)) as client:
        yield Talk(client.open("/lines.Lines/Talk", Line, Line))


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
