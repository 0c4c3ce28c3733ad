"""ASGI applications that references name."""

from collections.abc import AsyncIterator

from starlette.applications import Starlette

from tests.agents.upstream.servers import Event, Server, finished, refusal, started


async def _answer(request: dict[str, object]) -> AsyncIterator[Event | str]:
    yield started(request)
    yield finished(request)


app = Server(_answer, refusal("/closed", 422, "secret detail")).app
empty = Starlette()
NUMBER = 1
