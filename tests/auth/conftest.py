"""A server that asks for tokens, an issuer of such tokens, and clients with them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
import pytest
from fastapi import FastAPI

from agui_container.main import build_app, build_service
from agui_container.server.run import uvicorn_config
from agui_container.settings import Auth, Settings
from tests.auth.clients import ASK, RequestResult
from tests.auth.issuer import AUDIENCE, TestIssuer
from tests.behaviour.server import listening, serving
from tests.engine.doubles import FakeClock
from tests.sse import http_client


@dataclass
class Guarded:
    """A server that asks for tokens of ``issuer``, whose clock is its own."""

    app: FastAPI
    url: str
    issuer: TestIssuer
    clock: FakeClock

    def token(self, subject: str = "alice", /, **claims: object) -> str:
        """A token that the server takes, unless the claims say otherwise."""
        return self.issuer.token(subject, **{"aud": AUDIENCE, **claims})

    async def ask(self, transport: str, token: str | None) -> RequestResult:
        return await ASK[transport](self.url, authorization(token))

    async def get(self, path: str, token: str | None = None) -> httpx.Response:
        async with http_client(self.url) as http:
            return await http.get(path, headers=authorization(token))


def authorization(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


class Guard(Protocol):
    async def __call__(self, **settings: Any) -> Guarded: ...  # noqa: ANN401 - the fields of Settings


@pytest.fixture
async def issuer() -> AsyncIterator[TestIssuer]:
    issuer = TestIssuer()
    async with listening(issuer.scripted_app()) as url:
        issuer.url = url
        yield issuer
        issuer.is_awake.set()


@pytest.fixture
async def guard(issuer: TestIssuer) -> AsyncIterator[Guard]:
    async with AsyncExitStack() as stack:

        async def guard(**settings: Any) -> Guarded:  # noqa: ANN401 - as above
            given = {"auth_discovery_url": issuer.discovery_url, "auth_allowed_audience": AUDIENCE, **settings}
            chosen = Settings(auth=Auth.JWT, **given)
            service = build_service(chosen)
            clock = FakeClock()
            service.clock = clock
            issuer.now = clock.time
            app = build_app(chosen, service)
            url = await stack.enter_async_context(serving(app, uvicorn_config(app, chosen)))
            return Guarded(app, url, issuer, clock)

        yield guard


@pytest.fixture
async def guarded(guard: Guard) -> Guarded:
    """A server with the usual settings: the token's audience must be right."""
    return await guard()


@pytest.fixture(params=["sse", "ws"])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name
