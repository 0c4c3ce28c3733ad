"""Gives tests running servers, and looks into their logs after each test."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.server.sockets.client import close_all
from tests.server.sockets.process import ServerProcess, Servers


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Servers by their settings, shared by the session, and stopped with status 0."""
    pool = Servers()
    try:
        yield pool
    finally:
        statuses = pool.close()
    assert set(statuses) <= {0}
    assert pool.faults() == [], pool.logs()


@pytest.fixture
def server(servers: Servers) -> ServerProcess:
    return servers()


@pytest.fixture(autouse=True)
def check_no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "servers" in request.fixturenames:
        pool: Servers = request.getfixturevalue("servers")
        assert pool.dead() == []
        if pool.faults():
            pytest.fail(f"a fault in a log:\n{pool.logs()}", pytrace=False)


@pytest_asyncio.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    yield
    await close_all()
