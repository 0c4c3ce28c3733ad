"""Tokens are written directly to the connection where nothing wraps ``send``."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput
from starlette.types import Send

from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.server.uvicorn_protocols import HttpProtocol
from agui_container.settings import Settings
from tests.behaviour.server import listening
from tests.engine.doubles import ask, make_service
from tests.sse import http_client

pytestmark = pytest.mark.wire

TOKENS = 50


async def paced_agent(_: RunAgentInput) -> AsyncIterator[Item]:
    for number in range(TOKENS):
        yield f"{number} "
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def respond(*origins: str) -> bytes:
    """The body of a run's response, from a real server on a socket."""
    service = make_service(paced_agent)
    await service.open()
    async with (
        listening(build_app(Settings(cors_origins=origins), service), lifespan="off") as url,
        http_client(url) as client,
    ):
        response = await client.post("/invocations", json=ask())
    assert response.status_code == 200
    return response.content


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    chunks, write_chunk = list[bytes](), HttpProtocol.write_chunk

    def record(connection: HttpProtocol, send: Send, body: bytes) -> bool:
        is_written = write_chunk(connection, send, body)
        if is_written:
            chunks.append(body)
        return is_written

    monkeypatch.setattr(HttpProtocol, "write_chunk", record)
    return chunks


def tokens_in(body: bytes) -> int:
    return body.count(b"TEXT_MESSAGE_CONTENT")


async def test_paced_tokens_are_written_directly_where_nothing_wraps_send(chunks: list[bytes]) -> None:
    body = await respond()
    assert tokens_in(body) == TOKENS
    assert tokens_in(b"".join(chunks)) > 0.9 * TOKENS
    assert len(chunks) > 0.9 * TOKENS


async def test_an_application_that_pages_may_call_gives_the_same_bytes_by_send(chunks: list[bytes]) -> None:
    body = await respond("http://page.example")
    assert (tokens_in(body), chunks) == (TOKENS, [])
