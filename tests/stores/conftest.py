"""One contract for every store: a test that takes ``store`` or ``replica`` runs over each."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.ports.store import Store
from app.stores import open_store
from app.stores.memory import MemoryStore

Replica = Callable[[], Awaitable[Store]]
"""Opens a store on what all stores of the test share, as another process would."""


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A file of the test's own."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A new database of each kind."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def replica(request: pytest.FixtureRequest) -> AsyncIterator[Replica]:
    """One test body over every store."""
    async with AsyncExitStack() as stack:
        memory = MemoryStore()
        url = None if request.param == "memory" else request.getfixturevalue(f"{request.param}_url")

        async def replica() -> Store:
            store = memory if url is None else open_store(url)
            stack.push_async_callback(store.aclose)
            await store.open()
            return store

        yield replica


@pytest.fixture
async def store(replica: Replica) -> Store:
    """A store with nothing in it."""
    return await replica()
