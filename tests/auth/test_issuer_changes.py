"""Tokens while the keys of their issuer change, or the issuer is slow or gone."""

import asyncio

import jwt
import pytest

from agui_container.auth import tokens
from agui_container.auth.tokens import ASK_SECONDS, MAX_AGE_SECONDS, REFRESH_SECONDS
from tests.auth.conftest import Guarded
from tests.auth.test_tokens import SERVED, UNAUTHORIZED, Statuses, check
from tests.engine.doubles import START, eventually

pytestmark = pytest.mark.wire

UNAVAILABLE: Statuses = {"sse": 503, "ws": 503}


async def test_a_new_key_is_found_when_it_is_first_used(guarded: Guarded, transport: str) -> None:
    old = guarded.token()
    check(await guarded.ask(transport, old), transport, "", SERVED)
    guarded.issuer.rotate()
    guarded.clock.advance(ASK_SECONDS)
    check(await guarded.ask(transport, guarded.token()), transport, "", SERVED)
    check(await guarded.ask(transport, old), transport, "UNAUTHORIZED", UNAUTHORIZED)


async def test_unknown_keys_make_the_server_ask_once_in_thirty_seconds(guarded: Guarded) -> None:
    tokens = [jwt.encode({}, "s" * 32, "HS256", {"kid": f"made-up-{number}"}) for number in range(20)]
    await guarded.ask("sse", guarded.token())
    assert guarded.issuer.asked.count("/keys") == 1
    for seconds, expected in ((ASK_SECONDS - 1, 1), (1, 2), (ASK_SECONDS, 3)):
        guarded.clock.advance(seconds)
        replies = await asyncio.gather(*(guarded.ask("sse", token) for token in tokens))
        assert {reply.code for reply in replies} == {"UNAUTHORIZED"}
        assert guarded.issuer.asked.count("/keys") == expected


async def test_a_withdrawn_key_is_taken_until_the_keys_are_read_again(guarded: Guarded) -> None:
    token = guarded.token(exp=int(START) + 10_000)
    check(await guarded.ask("sse", token), "sse", "", SERVED)
    guarded.issuer.rotate()
    guarded.clock.advance(REFRESH_SECONDS - 1)
    check(await guarded.ask("sse", token), "sse", "", SERVED)
    guarded.clock.advance(1)
    check(await guarded.ask("sse", token), "sse", "UNAUTHORIZED", UNAUTHORIZED)


async def test_a_known_key_is_taken_for_a_day_while_the_issuer_is_gone(guarded: Guarded) -> None:
    token = guarded.token(exp=int(START) + 2 * MAX_AGE_SECONDS)
    check(await guarded.ask("sse", token), "sse", "", SERVED)
    guarded.issuer.answer("/keys", {}, 500)
    guarded.clock.advance(MAX_AGE_SECONDS - 1)
    check(await guarded.ask("sse", token), "sse", "", SERVED)
    guarded.clock.advance(1)
    check(await guarded.ask("sse", token), "sse", "AUTH_UNAVAILABLE", UNAVAILABLE)


async def test_a_slow_issuer_is_a_clear_error_and_known_keys_go_on(
    guarded: Guarded, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(await guarded.ask(transport, guarded.token()), transport, "", SERVED)
    guarded.clock.advance(ASK_SECONDS)
    guarded.issuer.is_awake.clear()
    known = guarded.token()
    guarded.issuer.rotate()
    monkeypatch.setattr(tokens, "FETCH_SECONDS", 60.0)
    waiting = asyncio.create_task(guarded.ask(transport, guarded.token()))
    await eventually(lambda: len(guarded.issuer.asked) == 3)
    check(await guarded.ask(transport, known), transport, "", SERVED)
    assert not waiting.done()
    guarded.issuer.answer("/keys", {}, 500)
    guarded.issuer.is_awake.set()
    reply = await waiting
    check(reply, transport, "AUTH_UNAVAILABLE", UNAVAILABLE)
    assert reply.message == "The token cannot be verified right now: its issuer does not answer."


async def test_an_issuer_that_is_gone_is_a_clear_error_and_is_asked_again(guarded: Guarded, transport: str) -> None:
    guarded.issuer.answer("/keys", {}, 500)
    check(await guarded.ask(transport, guarded.token()), transport, "AUTH_UNAVAILABLE", UNAVAILABLE)
    asked = len(guarded.issuer.asked)
    check(await guarded.ask(transport, guarded.token()), transport, "AUTH_UNAVAILABLE", UNAVAILABLE)
    assert len(guarded.issuer.asked) == asked  # within a second nobody asks again
    guarded.issuer.answers.clear()
    guarded.clock.advance(1)
    check(await guarded.ask(transport, guarded.token()), transport, "", SERVED)
