"""Complete responses, which count as in flight until their clients have taken them."""

import asyncio

import pytest

from agui_container.engine.admission.quota import SMALL_BYTES
from agui_container.transports import plain_response
from agui_container.transports.plain_response import SLICE_BYTES, PlainResponse
from tests.engine.doubles import caller
from tests.transports.exchange import BUDGET, AsgiExchange


async def test_a_large_response_is_sent_in_slices_and_is_whole() -> None:
    exchange, body = AsgiExchange(), bytes(range(250)) * (SLICE_BYTES // 150)
    await exchange.answer(PlainResponse(body), "GET")
    assert b"".join(exchange.bodies) == body
    assert max(map(len, exchange.bodies)) == SLICE_BYTES
    assert exchange.messages[0]["status"] == 200


async def test_a_response_that_the_budget_has_no_room_for_is_refused() -> None:
    exchange = AsgiExchange()
    exchange.state["caller"], exchange.state["refused_status"] = caller(), None
    await exchange.answer(PlainResponse(bytes(BUDGET)), "GET")
    assert exchange.messages[0]["status"] == 429
    assert (b"retry-after", b"1") in exchange.messages[0]["headers"]
    assert b'"code":"RATE_LIMIT_EXCEEDED"' in b"".join(exchange.bodies)


@pytest.mark.parametrize("size", [0, SMALL_BYTES, 2 * SMALL_BYTES])
@pytest.mark.parametrize("takes_head", [False, True])
async def test_a_client_that_takes_nothing_of_a_response_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, size: int, *, takes_head: bool
) -> None:
    writes = 0

    async def wait_for_ever(_: bytes) -> None:
        nonlocal writes
        writes += 1
        if writes > takes_head:
            await asyncio.Event().wait()

    monkeypatch.setattr(plain_response, "SEND_SECONDS", 0)
    caplog.set_level("INFO")
    exchange = AsgiExchange(wait_for_ever)
    await exchange.answer(PlainResponse(bytes(size)), "GET")
    assert not any(exchange.bodies)
    assert f"slow reader disconnected bytes={size}" in caplog.text
