"""One contract for every store: a test that takes ``store`` or ``replica`` runs over each.

A test that takes ``durable`` or ``durable_replica`` runs over those that keep runs, their events and their leases.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine, Pool, event

from agui_container.ports.store import DurableStore, Store
from agui_container.stores import open_store
from tests.models.bedrock.doubles import as_nobody
from tests.stores.agentcore.server import memory_service

Replica = Callable[[], Awaitable[Store]]
"""Opens a store on what all stores of the test share, as another process would."""

DurableReplica = Callable[[], Awaitable[DurableStore]]

Listen = Callable[[type[Engine | Pool], str, Callable[..., None]], None]
"""Calls a function at an event of SQLAlchemy's engines or pools, until the test ends."""


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Every store's engine and pool are heard; a test has one store only."""
    heard = []

    def listen(target: type[Engine | Pool], name: str, function: Callable[..., None]) -> None:
        event.listen(target, name, function)
        heard.append((target, name, function))

    yield listen
    for one in heard:
        event.remove(*one)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture(params=["memory", "agentcore", "sqlite", pytest.param("postgres", marks=pytest.mark.services)])
async def replica(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Replica]:
    """One test body over every store. Those in memory are one process's, so all that ask share it."""
    async with AsyncExitStack() as stack:
        shared: Store | None = None
        url = request.param
        if url == "memory":
            shared = open_store(url)
        elif url == "agentcore":
            as_nobody(monkeypatch)
            service = await stack.enter_async_context(memory_service())
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", service.url)
            shared = open_store("agentcore-memory:chats-0123456789")
        else:
            url = request.getfixturevalue(f"{url}_url")

        async def replica() -> Store:
            store = shared or open_store(url)
            stack.push_async_callback(store.aclose)
            await store.open()
            return store

        yield replica


@pytest.fixture
async def store(replica: Replica) -> Store:
    return await replica()


@pytest.fixture
async def durable_replica(url: str) -> AsyncIterator[DurableReplica]:
    async with AsyncExitStack() as stack:

        async def replica() -> DurableStore:
            store = open_store(url)
            assert isinstance(store, DurableStore)
            stack.push_async_callback(store.aclose)
            await store.open()
            return store

        yield replica


@pytest.fixture
async def durable(durable_replica: DurableReplica) -> DurableStore:
    return await durable_replica()
