"""Databases are brought up to date: all steps together are the tables, and older data stays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from sqlite3 import OperationalError
from typing import Any

import pytest
from sqlalchemy import Connection, Inspector, inspect, make_url, text
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import InterruptScope, PendingInterrupt, RunStatus
from agui_container.ports.store import StoreUnavailable
from agui_container.stores import open_store
from agui_container.stores.sql.database import Database, _write_ahead
from agui_container.stores.sql.schema import METADATA, digest_of
from agui_container.stores.sql.store import upgrade
from tests.stores.doubles import RUN, THREAD, A, claim_run, ending, envelopes, run


@asynccontextmanager
async def write_transaction(url: str) -> AsyncIterator[AsyncConnection]:
    """Open a transaction in a database without a migration."""
    database = Database(make_url(url))
    try:
        async with database.migration_transaction() as connection:
            yield connection
    finally:
        await database.aclose()


def index_as_text(index: ReflectedIndex) -> str:
    """An index with its condition, which is an object of SQLAlchemy's."""
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return f"{index | {'dialect_options': options}}"


def describe_schema(connection: Connection) -> dict[str, Any]:
    """Return every table with its columns, keys, constraints and indexes."""
    inspector: Inspector = inspect(connection)
    return {
        table: {
            "columns": [column | {"type": repr(column["type"])} for column in inspector.get_columns(table)],
            "primary key": inspector.get_pk_constraint(table),
            "foreign keys": inspector.get_foreign_keys(table),
            "unique": sorted(inspector.get_unique_constraints(table), key=str),
            "indexes": sorted(map(index_as_text, inspector.get_indexes(table))),
        }
        for table in inspector.get_table_names()
        if table != "alembic_version"
    }


async def test_all_steps_together_are_the_tables(url: str) -> None:
    async with write_transaction(url) as connection:
        await connection.run_sync(upgrade)
        stepped = await connection.run_sync(describe_schema)
        for table in reversed(METADATA.sorted_tables):
            await connection.execute(text(f"DROP TABLE {table.name}"))
        await connection.run_sync(METADATA.create_all)
        assert stepped == await connection.run_sync(describe_schema)
    assert stepped.keys() == METADATA.tables.keys()


OLD_THREAD = """
INSERT INTO threads (number, digest, owner, thread_id, status, created_at, changed_at, revision)
VALUES (1, :thread, 'owner', 't1', 'agent_turn', 1, 1, 1)
"""
OLD_RUN = """
INSERT INTO runs (number, thread, digest, owner, thread_id, run_id, replica, lease_until, status, started_at, kept)
VALUES (1, 1, :run, 'owner', 't1', 'r1', :replica, 115, 'running', 100, true)
"""
OLD_INTERRUPT = """
INSERT INTO interrupts (number, thread, depth, digest, interrupt_id, payload, until, settled)
VALUES (1, :thread, 0, :id, 'i1', :payload, 1e9, false)
"""
OLD_SEQ = "UPDATE runs SET last_seq = 1"
OLD_ENVELOPE = "INSERT INTO envelopes (run, seq, type, data) VALUES (1, 1, 'CUSTOM', :data)"


async def test_an_older_database_keeps_its_data(url: str) -> None:
    async with write_transaction(url) as connection:
        await connection.run_sync(upgrade, "0001")
        assert "goals" not in await connection.run_sync(describe_schema)
        await connection.execute(text(OLD_THREAD), {"thread": digest_of(*THREAD)})
        await connection.execute(text(OLD_RUN), {"run": digest_of(*RUN), "replica": A})
        await connection.execute(text(OLD_SEQ))
        await connection.execute(text(OLD_ENVELOPE), {"data": envelopes(1, 1)[0].data})
        asked = {"thread": digest_of(*THREAD), "id": digest_of("i1"), "payload": b"asked"}
        await connection.execute(text(OLD_INTERRUPT), asked)
    store = open_store(url)
    await store.open()
    try:
        record = await store.runs.get(RUN)
        assert record is not None
        assert (record.status, record.replica, record.last_seq) == (RunStatus.RUNNING, A, 1)
        await store.runs.append(RUN, A, envelopes(2, 2))
        assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, 2)
        delta = await store.threads.changes(THREAD)
        assert delta is not None
        assert list(delta.goals or ()) == []
        place = InterruptScope(0, *THREAD)
        assert list(await store.interrupts.list_open(place, 1.0)) == [PendingInterrupt("i1", b"asked", 1e9)]
        assert await store.interrupts.settle(place, "i1", b"answered", 1e9, 1.0)
    finally:
        await store.aclose()


async def test_an_input_that_an_older_replica_stored_is_forgotten_with_the_events(url: str) -> None:
    store = open_store(url)
    await store.open()
    try:
        await claim_run(store)
        async with write_transaction(url) as connection:
            await connection.execute(text("UPDATE runs SET input = :asked"), {"asked": b"{}"})
        await store.runs.finish(RUN, A, envelopes(1, 1), ending(ended_at=10.0))
        assert await store.runs.forget(25.0) == 1
        async with write_transaction(url) as connection:
            assert await connection.scalar(text("SELECT input FROM runs")) is None
    finally:
        await store.aclose()


async def test_replicas_may_start_at_once(url: str) -> None:
    stores = [open_store(url) for _ in range(3)]
    try:
        await asyncio.gather(*(store.open() for store in stores))
        for n, store in enumerate(stores):
            await claim_run(store, run(f"r{n}", f"t{n}"))
        assert len((await stores[0].runs.list(None)).items) == 3
    finally:
        for store in stores:
            await store.aclose()


class Locked:
    """A cursor on a file whose journal somebody else changes for a while."""

    def __init__(self, tries: int) -> None:
        self.said: list[str] = []
        self._tries = tries

    def execute(self, statement: str) -> None:
        self.said.append(statement)
        if statement.startswith("PRAGMA") and self.said.count(statement) < self._tries:
            raise OperationalError("database is locked")


def test_a_journal_that_somebody_else_changes_is_waited_for() -> None:
    cursor: Any = Locked(3)
    _write_ahead(cursor)
    assert cursor.said == [
        *["PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE", "ROLLBACK"] * 2,
        "PRAGMA journal_mode = WAL",
    ]
    stuck: Any = Locked(10**9)
    with pytest.raises(OperationalError):
        _write_ahead(stuck)


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
    with pytest.raises(StoreUnavailable, match="later version"):
        await store.open()
    await store.aclose()
