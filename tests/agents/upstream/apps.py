"""ASGI applications that references name."""

from collections.abc import AsyncIterator

from starlette.applications import Starlette

from tests.agents.upstream.servers import Event, Server, finished, refusal, started


async def _answer(request: dict[str, object]) -> AsyncIterator[Event | str]:
    yield started(request)
    yield finished(request)


app = Server(_answer, *(refusal(f"/refused/{status}", status, "secret detail") for status in (422, 503))).app
empty = Starlette()
NUMBER = 1
