"""The budget of bytes in flight, and its shares."""

import asyncio

import pytest

from agui_container.protocol.errors import AppError
from agui_container.transports import bytes_in_flight, plain_response
from agui_container.transports.bytes_in_flight import SMALL_BYTES, ByteBudget
from agui_container.transports.plain_response import SLICE_BYTES, PlainResponse
from tests.engine.doubles import caller
from tests.transports.exchange import BUDGET, AsgiExchange

LARGE = 10 * SMALL_BYTES


def test_one_caller_gets_half_of_the_budget_and_another_one_the_other_half() -> None:
    budget = ByteBudget(2 * LARGE)
    one, other = (budget.share_of(caller(f"session:{name}")) for name in "ab")
    with one.reserve(LARGE):
        with pytest.raises(AppError, match="Too many bytes") as raised:
            one.reserve(SMALL_BYTES + 1)
        assert raised.value.code == "RATE_LIMIT_EXCEEDED"
        with other.reserve(LARGE):
            assert budget.used == 2 * LARGE
    assert budget.used == 0
    one.reserve(LARGE)


def test_the_whole_budget_is_a_limit_too() -> None:
    budget = ByteBudget(2 * LARGE)
    shares = [budget.share_of(caller(address)) for address in ("first", "second", "third")]
    reservations = [share.reserve(LARGE) for share in shares[:2]]
    with pytest.raises(AppError, match="Too many bytes"):
        shares[2].reserve(LARGE)
    reservations[0].resize(0)
    shares[2].reserve(LARGE)


def test_a_share_belongs_to_an_account() -> None:
    budget = ByteBudget(BUDGET)
    one, same, other = caller("session:a"), caller("session:a"), caller("session:b")
    assert budget.share_of(one) is budget.share_of(same)
    assert budget.share_of(one) is not budget.share_of(other)


def test_small_bodies_are_not_counted() -> None:
    budget = ByteBudget(2 * LARGE)
    share = budget.share_of(caller())
    with share.reserve(LARGE), share.reserve(SMALL_BYTES):
        assert budget.used == LARGE


def test_a_reservation_that_cannot_grow_stays_as_it_is() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share_of(caller()).reserve(LARGE) as reservation:
        with pytest.raises(AppError, match="Too many bytes"):
            reservation.resize(LARGE + 1)
        assert budget.used == LARGE


async def test_an_event_waits_until_there_is_room() -> None:
    share = ByteBudget(2 * LARGE).share_of(caller())
    first = share.reserve(LARGE)
    later = asyncio.create_task(share.reserve_later(LARGE))
    await asyncio.sleep(0)
    assert not later.done()
    first.resize(0)
    (await later).resize(0)


async def test_an_event_that_waits_is_not_counted_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []
    monkeypatch.setattr(bytes_in_flight, "count_refusal", lambda name, _: refused.append(name))
    share = ByteBudget(2 * LARGE).share_of(caller())
    first = share.reserve(LARGE)
    later = asyncio.create_task(share.reserve_later(LARGE))
    await asyncio.sleep(0)
    first.resize(0)
    (await later).resize(0)
    assert refused == []


async def test_an_event_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytes_in_flight, "WAIT_SECONDS", 0)
    share = ByteBudget(2 * LARGE).share_of(caller())
    with share.reserve(LARGE), pytest.raises(AppError, match="Too many bytes"):
        await share.reserve_later(LARGE)


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
