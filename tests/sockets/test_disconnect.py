"""A client that leaves in the middle of its run, over each transport, under each ``AGUI_ON_DISCONNECT``.

All is seen from outside: ``GET /runs``, the run's own stream, and what the agent says happened to it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.sockets.client import (
    HttpExchange,
    Json,
    ask,
    get,
    is_last,
    is_text,
    post,
    receive_frame,
    receive_until,
    request,
    run_input,
    say,
    socket_to,
    text_of,
    wait_until,
)
from tests.sockets.process import Servers

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


async def wait_until_unread(port: int, document: Json) -> None:
    """Wait until the server counts no reader of the run."""

    async def unread() -> bool:
        return bool((await run_of(port, document))["readers"] == 0)

    await wait_until(unread)


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


@every_way_to_leave
@pytest.mark.parametrize("policy", ["continue", "grace:30"])
async def test_a_run_goes_on_without_a_reader_and_loses_nothing(servers: Servers, policy: str, leave: Leave) -> None:
    port = servers(AGUI_ON_DISCONNECT=policy).port
    document = run_input("hold")
    await leave(port, document)
    await wait_until_unread(port, document)
    await say(port, f"release {document['runId']}")

    assert await final_status(port, document) == "finished"
    assert await say(port, f"story {document['runId']}") == "finished"

    events = (await ask(port, post(document))).events
    assert text_of(events) == "before after"
    assert events[-1]["type"] == "RUN_FINISHED"


@every_way_to_leave
async def test_a_reader_that_comes_back_within_the_grace_gets_the_rest_over_sse(servers: Servers, leave: Leave) -> None:
    port = servers(AGUI_ON_DISCONNECT="grace:30").port
    document = run_input("hold")
    await leave(port, document)
    await wait_until_unread(port, document)

    again = await HttpExchange.open(port, request("GET", f"/runs/{document['runId']}/events?after=3"))
    await again.head()
    assert (await run_of(port, document))["readers"] == 1
    await say(port, f"release {document['runId']}")
    await again.rest()
    await again.close()
    assert again.text == "after"
    assert again.events[-1]["type"] == "RUN_FINISHED"


@every_way_to_leave
async def test_a_reader_that_comes_back_within_the_grace_gets_the_rest_over_ws(servers: Servers, leave: Leave) -> None:
    port = servers(AGUI_ON_DISCONNECT="grace:30").port
    document = run_input("hold")
    await leave(port, document)
    await wait_until_unread(port, document)

    async with socket_to(port, "/ws?cursor=1") as connection:
        await connection.send(f'{{"command":{{"type":"attach","runId":"{document["runId"]}","after":3}},"id":1}}')
        assert (await receive_frame(connection))["control"] == "result"
        await say(port, f"release {document['runId']}")
        events = await receive_until(connection, is_last)
    assert text_of(events) == "after"
    assert [event["metadata"]["seq"] for event in events] == list(range(4, 4 + len(events)))


@every_way_to_leave
async def test_in_its_grace_a_run_gives_way_to_a_new_run_on_its_thread(servers: Servers, leave: Leave) -> None:
    port = servers(AGUI_ON_DISCONNECT="grace:30").port
    document = run_input("hold")
    await leave(port, document)
    await wait_until_unread(port, document)

    answer = await ask(port, post(run_input("count 1 next", thread=document["threadId"])))
    assert text_of(answer.events) == "next.0 "
    assert (await run_of(port, document))["status"] == "cancelled"
    assert await say(port, f"story {document['runId']}") == "cancelled"


async def test_a_second_reader_keeps_a_run_alive_when_the_first_leaves(servers: Servers) -> None:
    port = servers(AGUI_ON_DISCONNECT="cancel").port
    document = run_input("hold")
    first = await (await HttpExchange.open(port, post(document))).until(is_text)
    second = await (await HttpExchange.open(port, request("GET", f"/runs/{document['runId']}/events"))).until(is_text)
    await first.close()

    async def one_left() -> bool:
        return bool((await run_of(port, document))["readers"] == 1)

    await wait_until(one_left)
    await say(port, f"release {document['runId']}")
    await second.rest()
    await second.close()
    assert second.text == "before after"
