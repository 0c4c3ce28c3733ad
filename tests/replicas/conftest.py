"""Two replicas on one PostgreSQL and one Redis, and one process after another on one SQLite file."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.sockets.client import close_all
from tests.sockets.process import Server

Start = Callable[[], Server]


@pytest.fixture(autouse=True)
async def leave_nothing_open() -> AsyncIterator[None]:
    """Close the connections of the test."""
    yield
    await close_all()


@pytest.fixture
def replica(postgres_url: str, redis_url: str) -> Iterator[Start]:
    """Starts one more replica."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Server(AGUI_STORE=postgres_url, AGUI_BUS=redis_url))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Start]:
    """Starts a process on the same file."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Server(AGUI_STORE=f"sqlite:///{tmp_path}/runs.db"))
