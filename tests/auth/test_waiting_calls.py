"""gRPC calls that wait for the verification of their tokens."""

import pytest

from agui_container.transports.grpc import open_calls
from tests.auth.conftest import Guard
from tests.auth.issuer import TestIssuer
from tests.grpc.h2 import message
from tests.grpc.in_loop_clients import STATUS, beside, raw
from tests.requirements import requirement

LIMIT = 8
SERVED, EXHAUSTED = "0", "8"


@requirement("grpc.calls")
async def test_calls_whose_tokens_are_being_verified_are_counted_and_the_oldest_gives_way(
    guard: Guard, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_calls, "MAX_UNVERIFIED_CALLS", LIMIT)
    issuer.is_awake.clear()
    guarded = await guard()
    async with raw(int(guarded.url.rpartition(":")[2])) as client:
        token = ("authorization", f"Bearer {guarded.token()}")
        oldest, *others = (client.call(STATUS, token) for _ in range(LIMIT + 1))
        assert await beside(client.status, oldest) == (EXHAUSTED, "Too many calls without a verified token are open.")
        issuer.is_awake.set()
        for stream in others:
            client.data(stream, message(b""), end=True)
        assert [(await beside(client.status, stream))[0] for stream in others] == [SERVED] * LIMIT
