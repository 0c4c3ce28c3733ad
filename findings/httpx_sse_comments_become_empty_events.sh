#!/usr/bin/env bash
# httpx-sse 0.4.3 beside sse-starlette 3.0.2: once a stream has sent one `id:`, every keep-alive comment arrives as an event.
#
# By the HTML standard a blank line dispatches nothing while the data buffer is empty, so `: ping` with its blank line is
# silent. httpx-sse keeps the last event id, as the standard asks, and takes that kept id for content of the next event.
# A client that calls `event.json()` on every event therefore fails at the first pause of a server that sends ids.
# Seen: without ids 2 events (one, two); with ids 3 events (one, an empty one for the comment, two).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check httpx==0.28.1 httpx-sse==0.4.3 sse-starlette==3.0.2 starlette==0.48.0 2>/dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio

import httpx
from httpx_sse import aconnect_sse
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route


async def stream(request: Request) -> EventSourceResponse:
    has_ids = request.query_params["ids"] == "yes"

    async def events():
        yield ServerSentEvent(data="one", id="1" if has_ids else None)
        yield ServerSentEvent(comment="ping")
        yield ServerSentEvent(data="two", id="2" if has_ids else None)

    return EventSourceResponse(events())


async def received(ids: str) -> list[str]:
    transport = httpx.ASGITransport(app=Starlette(routes=[Route("/", stream)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        async with aconnect_sse(client, "GET", "/", params={"ids": ids}) as source:
            return [event.data async for event in source.aiter_sse()]


async def main() -> None:
    without_ids, with_ids = await received("no"), await received("yes")
    print("without ids:", without_ids)
    print("with ids:   ", with_ids)
    assert without_ids == ["one", "two"]
    assert with_ids == ["one", "", "two"]


asyncio.run(main())
PYTHON
echo "as described"
