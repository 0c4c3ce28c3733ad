"""A client that leaves in the middle of its run, over each transport, under each ``AGUI_ON_DISCONNECT``.

All is seen from outside: ``GET /runs``, the run's own stream, and what the agent says happened to it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.engine.doubles import Json
from tests.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input, say, wait_until
from tests.sockets.process import Servers
from tests.websocket import receive_until, socket_to

Leave = Callable[[int, Json], Awaitable[None]]


async def leave_sse(port: int, document: Json) -> None:
    """Start a run, read its first text, and close the connection."""
    exchange = await (await HttpExchange.open(port, post(document))).until(is_text)
    await exchange.close()


async def crash_sse(port: int, document: Json) -> None:
    """Start a run, read its first text, and reset the connection."""
    exchange = await (await HttpExchange.open(port, post(document))).until(is_text)
    await exchange.close(reset=True)


async def leave_ws(port: int, document: Json) -> None:
    """Start a run over a WebSocket, read its first text, and close the WebSocket in order."""
    async with socket_to(port) as connection:
        await connection.send(_text(document))
        await receive_until(connection, is_text)


async def crash_ws(port: int, document: Json) -> None:
    """Start a run over a WebSocket, read its first text, and break the connection."""
    connection = await socket_to(port)
    await connection.send(_text(document))
    await receive_until(connection, is_text)
    connection.transport.abort()
    await connection.wait_closed()


def _text(document: Json) -> str:
    return post(document).decode().partition("\r\n\r\n")[2]


every_way_to_leave = pytest.mark.parametrize("leave", [leave_sse, crash_sse, leave_ws, crash_ws])


async def run_of(port: int, document: Json) -> Any:  # noqa: ANN401 - JSON
    """Return the run as ``GET /runs`` lists it."""
    return await get(port, f"/runs/{document['runId']}")


async def final_status(port: int, document: Json) -> str:
    """Wait for the end of the run, and return its status."""

    async def over() -> bool:
        return "endedAt" in await run_of(port, document)

    await wait_until(over)
    return str((await run_of(port, document))["status"])


@every_way_to_leave
@pytest.mark.parametrize("policy", ["cancel", "grace:0.2"])
async def test_a_run_that_nobody_reads_is_cancelled_and_its_agent_told(
    servers: Servers, policy: str, leave: Leave
) -> None:
    port = servers(AGUI_ON_DISCONNECT=policy).port
    document = run_input("hold")
    await leave(port, document)

    assert await final_status(port, document) == "cancelled"
    assert await say(port, f"story {document['runId']}") == "cancelled"

    events = (await ask(port, request("GET", f"/runs/{document['runId']}/events"))).events
    assert [event["type"] for event in events[-2:]] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert events[-1]["outcome"] == {"type": "cancelled"}
