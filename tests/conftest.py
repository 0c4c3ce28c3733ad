"""Fixtures of the whole suite: one server around an agent that the test defines, reached over every transport."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Protocol

import hypothesis
import pytest

from app.engine.policy import Limits
from app.main import create_app
from app.settings import Scope, Settings
from tests.behaviour.client import Client
from tests.behaviour.inprocess import InProcess
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.engine.doubles import FakeClock, make_service

pytest_plugins = ["tests.servers"]

# The same examples in every run, however slow the machine is.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): the behaviours of tests/requirements.py that a test shows")


class Connect(Protocol):
    """Build a server around an agent and give a client of it."""

    async def __call__(
        self,
        agent: object,
        limits: Limits | None = None,
        **settings: Any,  # noqa: ANN401 - the fields of Settings
    ) -> Client: ...


class Serve(Protocol):
    """Build a server around an agent and give both its clients, for what only one transport shows."""

    async def __call__(
        self,
        agent: object,
        limits: Limits | None = None,
        **settings: Any,  # noqa: ANN401 - the fields of Settings
    ) -> tuple[OverSse, OverWs]: ...


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """A real server for one agent."""
    async with AsyncExitStack() as stack:

        async def serve(
            agent: object,
            limits: Limits | None = None,
            **settings: Any,  # noqa: ANN401 - the fields of Settings
        ) -> tuple[OverSse, OverWs]:
            chosen, clock = Settings(**settings), FakeClock()
            service = make_service(agent, chosen, clock=clock, limits=limits)
            url = await stack.enter_async_context(serving(create_app(chosen, service)))
            clients = OverSse(service, clock, url), OverWs(service, clock, url)
            for client in clients:
                stack.push_async_callback(client.close)
            return clients

        yield serve


@pytest.fixture(params=["inprocess", "sse", "ws"])
async def connect(request: pytest.FixtureRequest, serve: Serve) -> AsyncIterator[Connect]:
    """One test body on every transport."""
    async with AsyncExitStack() as stack:

        async def connect(
            agent: object,
            limits: Limits | None = None,
            **settings: Any,  # noqa: ANN401 - the fields of Settings
        ) -> Client:
            if request.param != "inprocess":
                over_sse, over_ws = await serve(agent, limits, **settings)
                return over_sse if request.param == "sse" else over_ws
            chosen, clock = Settings(**settings), FakeClock()
            service = make_service(agent, chosen, clock=clock, limits=limits)
            await service.open()
            stack.push_async_callback(service.drain, 0)
            return InProcess(service, clock, by_session=chosen.scope is Scope.SESSION)

        yield connect
