"""Fixtures of the whole suite: one server around an agent that the test defines, reached over every transport."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import hypothesis
import pytest
from botocore.loaders import JSONFileLoader  # type: ignore[import-untyped]

from agui_container.engine.engine import Engine
from agui_container.engine.limits import CapacityLimits, IdentityLimits
from agui_container.main import build_app, build_service
from agui_container.settings import LimitBy, Scope, Settings
from agui_container.stores import open_store
from tests import secret_search
from tests.behaviour.client import Client
from tests.behaviour.inprocess import InProcess
from tests.behaviour.over_platform import PLATFORM_WAYS, behind_platform
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.engine.doubles import FakeClock, make_service

pytest_plugins = ["tests.lanes", "tests.servers", "tests.wheels"]

# The same examples in every run, however slow the machine is.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    root = Path(__file__).parents[1]  # for the processes that tests start
    os.environ["PYTHONPATH"] = f"{root / 'app'}{os.pathsep}{root / 'clients' / 'python' / 'src'}"
    # Most of what pip installs in a test is never imported, so it is not compiled. pip takes a false value for yes.
    os.environ["PIP_NO_COMPILE"] = "0"
    config.pluginmanager.register(secret_search)


@pytest.fixture(scope="session", autouse=True)
def models_of_aws() -> Iterator[None]:
    """boto3 parses each of its files once: a client reads 1.5 MB of them, and hundreds of tests make clients."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", staticmethod(cache(JSONFileLoader().load_file)))
        yield


Clients_co = TypeVar("Clients_co", covariant=True)


class Build(Protocol[Clients_co]):
    async def __call__(
        self,
        agent: object,
        limits: CapacityLimits | None = None,
        caller_limits: IdentityLimits | None = None,
        **settings: Any,  # noqa: ANN401 - the fields of Settings
    ) -> Clients_co: ...


Connect = Build[Client]
Serve = Build[tuple[OverSse, OverWs]]
"""Builds a server around an agent and gives both its clients, for what only one transport shows."""


def engine_around(
    agent: object,
    settings: Settings,
    clock: FakeClock,
    limits: CapacityLimits | None,
    caller_limits: IdentityLimits | None,
) -> Engine:
    """Return an engine around an agent. Without one it is that of the settings, whose time is real."""
    if agent is None:
        return build_service(settings)
    return make_service(agent, settings, clock=clock, limits=limits, caller_limits=caller_limits)


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def serve(
            agent: object,
            limits: CapacityLimits | None = None,
            caller_limits: IdentityLimits | None = None,
            **settings: Any,  # noqa: ANN401 - the fields of Settings
        ) -> tuple[OverSse, OverWs]:
            chosen, clock = Settings(**settings), FakeClock()
            service = engine_around(agent, chosen, clock, limits, caller_limits)
            url = await stack.enter_async_context(serving(build_app(chosen, service)))
            clients = OverSse(service, clock, url), OverWs(service, clock, url)
            for client in clients:
                stack.push_async_callback(client.close)
            return clients

        yield serve


WAYS = {"wire": ["sse", "ws"], "durable": ["inprocess-sqlite"], "platform": PLATFORM_WAYS}
"""Ways in which a test reaches its server besides ``inprocess``, by the marks that ask for them."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "connect" in metafunc.fixturenames:
        more = [way for mark, ways in WAYS.items() if metafunc.definition.get_closest_marker(mark) for way in ways]
        metafunc.parametrize("connect", ["inprocess", *more], indirect=True)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty") / "runs.db"


async def copied(database: Path, folder: Path) -> str:
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
            chosen, clock = Settings(**{**own, **settings}), FakeClock()
            service = engine_around(agent, chosen, clock, limits, caller_limits)
            await service.open()
            stack.push_async_callback(service.aclose)
            stack.push_async_callback(service.drain, 0)
            return InProcess(
                service,
                clock,
                by_session=chosen.scope is Scope.SESSION,
                limits_by_session=chosen.limit_by is LimitBy.SESSION,
            )

        yield connect
