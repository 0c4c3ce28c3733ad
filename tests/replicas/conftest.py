"""Replicas on one PostgreSQL and one Redis, processes on one SQLite file, and databases that a test may break."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.ports import free_port
from tests.server.sockets.client import close_all
from tests.server.sockets.process import ServerProcess
from tests.servers import Program, redis_server_at


class Start(Protocol):
    """Start one more process, which ends with the test."""

    def __call__(self, **settings: str) -> ServerProcess: ...


@pytest.fixture(autouse=True)
async def leave_nothing_open() -> AsyncIterator[None]:
    yield
    await close_all()


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(ServerProcess(**settings))


@pytest.fixture
def replica(start: Start, postgres_url: str, redis_url: str) -> Start:
    return lambda **settings: start(AGUI_STORE=postgres_url, AGUI_BUS=redis_url, **settings)


@pytest.fixture
def process(start: Start, tmp_path: Path) -> Start:
    return lambda **settings: start(AGUI_STORE=f"sqlite:///{tmp_path}/runs.db", **settings)


@pytest.fixture
def frail_redis(tmp_path: Path) -> Iterator[Program]:
    with redis_server_at(free_port(), tmp_path) as program:
        yield program
