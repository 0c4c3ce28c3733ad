"""Fixtures of the whole suite: one server around an agent that the test defines, reached over every transport."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import hypothesis
import pytest
from botocore.loaders import JSONFileLoader  # type: ignore[import-untyped]

from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.main import build_app
from agui_container.settings import LimitBy, Scope, Settings
from agui_container.stores import open_store
from tests import secret_search
from tests.behaviour.client import Client
from tests.behaviour.inprocess import InProcess
from tests.behaviour.over_platform import behind_platform, platform_ways
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.engine.doubles import FakeClock, make_service

pytest_plugins = ["tests.servers", "tests.wheels"]

# The same examples in every run, however slow the machine is.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    root = Path(__file__).parents[1]  # for the processes that tests start
    os.environ["PYTHONPATH"] = f"{root / 'app'}{os.pathsep}{root / 'clients' / 'python' / 'src'}"
    config.addinivalue_line("markers", "requirement(*ids): the behaviours of tests/requirements.py that a test shows")
    config.pluginmanager.register(secret_search)
    config.addinivalue_line("markers", "not_behind_platform(reason, *ways): what the local AgentCore must change")
    config.addinivalue_line("markers", "durable: what must be true with a database, too")


@pytest.fixture(scope="session", autouse=True)
def models_of_aws() -> Iterator[None]:
    """boto3 parses each of its files once: a client reads 1.5 MB of them, and hundreds of tests make clients."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", staticmethod(cache(JSONFileLoader().load_file)))
        yield


class Connect(Protocol):
    """Build a server around an agent and give a client of it."""

    async def __call__(
        self,
        agent: object,
        limits: CapacityLimits | None = None,
        caller_limits: IdentityLimits | None = None,
        **settings: Any,  # noqa: ANN401 - the fields of Settings
    ) -> Client: ...


class Serve(Protocol):
    """Build a server around an agent and give both its clients, for what only one transport shows."""

    async def __call__(
        self,
        agent: object,
        limits: CapacityLimits | None = None,
        caller_limits: IdentityLimits | None = None,
        **settings: Any,  # noqa: ANN401 - the fields of Settings
    ) -> tuple[OverSse, OverWs]: ...


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """A real server for one agent."""
    async with AsyncExitStack() as stack:

        async def serve(
            agent: object,
            limits: CapacityLimits | None = None,
            caller_limits: IdentityLimits | None = None,
            **settings: Any,  # noqa: ANN401 - the fields of Settings
        ) -> tuple[OverSse, OverWs]:
            chosen, clock = Settings(**settings), FakeClock()
            service = make_service(agent, chosen, clock=clock, limits=limits, caller_limits=caller_limits)
            url = await stack.enter_async_context(serving(build_app(chosen, service)))
            clients = OverSse(service, clock, url), OverWs(service, clock, url)
            for client in clients:
                stack.push_async_callback(client.close)
            return clients

        yield serve


WAYS = ["inprocess", "sse", "ws"]
"""Ways in which a test reaches its server, which has an in-memory store."""

DURABLE_WAYS = ["ws-sqlite"]
"""One of them with a database, for what must be as true there."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test body on every transport, behind the platform but for a reason, and on a database where that is asked."""
    if "connect" in metafunc.fixturenames:
        durable = DURABLE_WAYS if metafunc.definition.get_closest_marker("durable") else []
        metafunc.parametrize("connect", [*WAYS, *durable, *platform_ways(metafunc.definition)], indirect=True)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of an empty SQLite database. Its tables are created once and copied."""
    return tmp_path_factory.mktemp("empty") / "runs.db"


async def copied(database: Path, folder: Path) -> str:
    """The URL of an empty database of a test's own."""
    if not database.exists():  # noqa: ASYNC240 - a moment on a local disk
        store = open_store(f"sqlite:///{database}")
        await store.open()
        await store.aclose()
    shutil.copy(database, folder)
    return f"sqlite:///{folder}/{database.name}"


@pytest.fixture
async def connect(
    request: pytest.FixtureRequest, serve: Serve, database: Path, tmp_path: Path
) -> AsyncIterator[Connect]:
    """A server around an agent, over the transport and with the store of the parameter."""
    transport, _, around = request.param.partition("-")
    own: dict[str, Any] = {"store": await copied(database, tmp_path)} if around == "sqlite" else {}
    if around == "platform":
        own["scope"] = Scope.NONE  # the platform adds a session's id, and the threads of the tests are everybody's
    async with AsyncExitStack() as stack:

        async def connect(
            agent: object,
            limits: CapacityLimits | None = None,
            caller_limits: IdentityLimits | None = None,
            **settings: Any,  # noqa: ANN401 - the fields of Settings
        ) -> Client:
            if transport != "inprocess":
                over_sse, over_ws = await serve(agent, limits, caller_limits, **{**own, **settings})
                if around == "platform":
                    return await stack.enter_async_context(behind_platform(transport, over_sse))
                return over_sse if transport == "sse" else over_ws
            chosen, clock = Settings(**settings), FakeClock()
            service = make_service(agent, chosen, clock=clock, limits=limits, caller_limits=caller_limits)
            await service.open()
            stack.push_async_callback(service.drain, 0)
            return InProcess(
                service,
                clock,
                by_session=chosen.scope is Scope.SESSION,
                limits_by_session=chosen.limit_by is LimitBy.SESSION,
            )

        yield connect
