"""A large result counts as in flight from the time at which it is read until its client has it, on every transport."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from pydantic_core import from_json, to_json

from agui_container.engine.admission.quota import SMALL_BYTES, Limit, Quota
from agui_container.main import build_app
from agui_container.runtime.offload import LARGE_BYTES
from agui_container.settings import Settings
from agui_container.transports.commands import encode_result
from agui_container.transports.plain_response import PlainResponse
from tests.behaviour.server import serving
from tests.engine.conversations import QUESTION, store_conversation
from tests.engine.doubles import caller, eventually, forever, make_service
from tests.requirements import requirement
from tests.sse import http_client
from tests.transports.exchange import BUDGET, AsgiExchange
from tests.websocket import send, socket_to

SIZE = 500_000
GET = {"type": "threads.get", "threadId": "t1"}

Read = Callable[[str], Awaitable[str]]


def over_http(path: str) -> Read:
    """A read of a path."""

    async def read(url: str) -> str:
        async with http_client(url) as http:
            return (await http.get(path)).text

    return read


async def over_sse(url: str) -> str:
    """The result of a command."""
    async with http_client(url) as http:
        return (await http.post("/invocations", json={"command": GET})).text


async def over_socket(url: str) -> str:
    """The result of a command on a socket."""
    async with socket_to(url) as socket:
        await send(socket, {"command": GET})
        return str(await socket.recv())


READS = {
    "thread": over_http("/threads/t1"),
    "delta": over_http("/threads/t1/delta"),
    "transcript": over_http("/threads/t1/transcript"),
    "session": over_http("/v1/ai/threads/t1"),
    "changes of a session": over_http("/v1/ai/threads/t1/delta"),
    "sse": over_sse,
    "socket": over_socket,
}


async def sample_used_bytes(quota: Quota, used: list[int]) -> None:
    """Append the bytes in flight in every turn of the event loop, until cancelled."""
    while True:
        used.append(quota.amounts[Limit.BYTES_IN_FLIGHT].used)
        await asyncio.sleep(0)


@requirement("caller.loop")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_result_counts_in_every_turn_of_the_loop_from_its_read_to_its_end(read: Read) -> None:
    used, settings = list[int](), Settings(roboto=True)
    service = make_service(forever, settings)
    await store_conversation(service.cluster.store, {**QUESTION, "content": "x" * SIZE})
    async with serving(build_app(settings, service)) as url:
        sampling = asyncio.create_task(sample_used_bytes(service.quota, used))
        assert "x" * SIZE in await read(url)
        await eventually(lambda: used[-1] == 0)
        sampling.cancel()
    counted = "".join("0" if size == 0 else "n" if size >= SIZE else "few" for size in used).strip("0")
    assert set(counted) == {"n"}


# --- encoding ---------------------------------------------------------------------------------------------------------


RESULTS: list[dict[str, object]] = [
    {},
    {"threadId": "é", "messages": []},
    {"threadId": "é", "messages": [{"id": "m", "content": "hi"}, {"id": "n"}], "runs": {}},
]


@pytest.mark.parametrize("result", RESULTS)
async def test_a_result_is_encoded_as_json(result: dict[str, object]) -> None:
    encoded = await encode_result(result)
    assert encoded == to_json(result)
    assert from_json(encoded) == result


async def test_a_large_result_is_encoded_while_other_tasks_run() -> None:
    items = [LARGE_BYTES * "x" for _ in range(5)]
    encoding = asyncio.create_task(encode_result({"messages": items}))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= len(items)
    assert from_json(encoding.result()) == {"messages": items}


# --- plain responses --------------------------------------------------------------------------------------------------


async def test_a_large_response_ends_when_its_client_has_taken_it() -> None:
    exchange, body = AsgiExchange(), bytes(2 * SMALL_BYTES)
    await exchange.answer(PlainResponse(body), "GET")
    sent = [(message["body"], message.get("more_body", False)) for message in exchange.messages[1:]]
    assert sent == [(body, True), (b"", False)]
    assert exchange.messages[0]["status"] == 200


async def test_a_response_that_the_budget_has_no_room_for_is_refused() -> None:
    exchange = AsgiExchange()
    exchange.state["caller"], exchange.state["refused_status"] = caller(), None
    await exchange.answer(PlainResponse(bytes(BUDGET)), "GET")
    assert exchange.messages[0]["status"] == 429
    assert (b"retry-after", b"1") in exchange.messages[0]["headers"]
    assert b'"code":"RATE_LIMIT_EXCEEDED"' in b"".join(exchange.bodies)
