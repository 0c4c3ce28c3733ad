"""Databases are brought up to date, and older data stays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.store import RunQuery, StoreUnavailable
from agui_container.stores import open_store
from agui_container.stores.sql.database import Database
from agui_container.stores.sql.store import SqlStore, upgrade
from tests.stores.doubles import claim_run, run


@asynccontextmanager
async def write_transaction(url: str) -> AsyncIterator[AsyncConnection]:
    database = Database(make_url(url))
    try:
        async with database.open() as connection:
            yield connection
    finally:
        await database.aclose()


async def test_replicas_may_start_at_once(url: str) -> None:
    stores = [SqlStore(make_url(url)) for _ in range(3)]
    try:
        await asyncio.gather(*(store.open() for store in stores))
        for n, store in enumerate(stores):
            await claim_run(store, run(f"r{n}", f"t{n}"))
        assert len((await stores[0].runs(RunQuery())).items) == 3
    finally:
        for store in stores:
            await store.aclose()


async def test_a_database_that_is_up_to_date_is_left_alone(url: str) -> None:
    for run_id in ("r1", "r2"):
        store = open_store(url)
        await store.open()
        await claim_run(store, run(run_id, run_id))
        await store.aclose()
    async with write_transaction(url) as connection:
        assert await connection.scalar(text("SELECT count(*) FROM runs")) == 2


async def test_a_database_of_a_later_version_is_refused(url: str) -> None:
    async with write_transaction(url) as connection:
        await connection.run_sync(upgrade)
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store = open_store(url)
    with pytest.raises(StoreUnavailable, match="another version"):
        await store.open()
    await store.aclose()
