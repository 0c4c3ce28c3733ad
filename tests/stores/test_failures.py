"""A database that is gone, slow, locked or full: one kind of error, and all is well once it is back."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, Pool, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection

from agui_container.engine.service import Service
from agui_container.main import build_service
from agui_container.ports.records import InterruptScope, PendingInterrupt, StoredGoal
from agui_container.ports.store import Store, StoreUnavailable
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import Settings
from agui_container.stores import open_store
from agui_container.stores.sql.database import CONNECTIONS
from agui_container.stores.sql.store import SqlStore
from tests.engine.doubles import asking, caller
from tests.engine.doubles import envelopes as sent
from tests.requirements import requirement
from tests.secret_search import planted, search
from tests.stores.conftest import Listen
from tests.stores.doubles import RUN, THREAD, A, claim_run, ending, envelopes, run
from tests.stores.tcp_relay import open_relay

PATIENCE = 0.5

SCOPE = InterruptScope(0, THREAD.owner, THREAD.thread_id, "")

PAGE = 4096
"""Bytes of a page of SQLite's."""

LARGE = 100_000
"""Characters of a message that needs pages of its own."""


async def works(store: Store, last_seq: int) -> None:
    """Reads and writes succeed, and what was refused has left nothing."""
    await store.runs.append(RUN, A, envelopes(1, last_seq))
    assert list(await store.runs.envelopes(RUN, 0)) == envelopes(1, last_seq)
    await store.runs.finish(RUN, A, [], ending())
    assert await store.threads.get(THREAD) is not None


# --- lost connections -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sqlite:////nonexistent/store.db", "postgresql://test@127.0.0.1:1/postgres"])
async def test_a_database_that_is_not_there_cannot_be_opened(url: str) -> None:
    store = open_store(url)
    with pytest.raises(StoreUnavailable):
        await store.open()
    await store.aclose()


async def test_a_file_that_is_no_database_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("not a database, but long enough to be looked at as one" * 100)
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    with pytest.raises(StoreUnavailable, match=r"store\.db failed: DatabaseError: file is not a database"):
        await store.open()
    await store.aclose()


async def test_a_database_that_comes_back_is_used_again(postgres_url: str) -> None:
    async with open_relay(make_url(postgres_url)) as (relay, url):
        store = SqlStore(url, PATIENCE * 4)
        await store.open()
        await claim_run(store)
        await store.runs.append(RUN, A, envelopes(1, 1))
        await relay.cut()
        with pytest.raises(StoreUnavailable):
            await store.runs.append(RUN, A, envelopes(2, 2))
        with pytest.raises(StoreUnavailable):
            await store.runs.envelopes(RUN, 0)
        with pytest.raises(StoreUnavailable):
            await store.threads.changes(THREAD)
        await relay.restore()
        await works(store, 3)
        await store.aclose()


async def test_a_database_that_does_not_answer_is_not_waited_for(postgres_url: str) -> None:
    async with open_relay(make_url(postgres_url)) as (relay, url):
        store = SqlStore(url, PATIENCE)
        await store.open()
        await claim_run(store)
        relay.stall()
        with pytest.raises(StoreUnavailable):
            await store.runs.append(RUN, A, envelopes(1, 1))
        relay.flow()
        await works(store, 2)
        await store.aclose()


USES: dict[str, Callable[[Store], Awaitable[object]]] = {
    "an append": lambda store: store.runs.append(RUN, A, envelopes(1, 1)),
    "a claim": lambda store: claim_run(store, run("r2", "t2")),
    "a read of events": lambda store: store.runs.envelopes(RUN, 0),
    "a read of a thread": lambda store: store.threads.changes(THREAD),
    "a new approval": lambda store: store.interrupts.put(SCOPE, [PendingInterrupt("i", b"{}", 2e9)]),
    "a read of approvals": lambda store: store.interrupts.list_open(SCOPE, 0),
    "the claim of an approval": lambda store: store.interrupts.settle(SCOPE, "i", b"{}", 2e9, 0),
    "a new goal": lambda store: store.goals.declare(RUN, [StoredGoal(RUN.run_id, 0, "t", b"{}", 0)]),
    "a renewed lease": lambda store: store.runs.renew(A, 2e9),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_a_server_that_restarts_costs_no_more_than_the_calls_under_way(
    postgres_url: str, use: Callable[[Store], Awaitable[object]]
) -> None:
    store = SqlStore(make_url(postgres_url), PATIENCE * 10)
    await store.open()
    await claim_run(store)
    await asyncio.gather(*(store.threads.get(THREAD) for _ in range(CONNECTIONS)))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    await use(store)
    await works(store, 2)
    await store.aclose()


# --- locked and full databases ----------------------------------------------------------------------------------------


async def test_a_file_that_another_program_has_locked_is_not_waited_for(sqlite_url: str) -> None:
    store = SqlStore(make_url(sqlite_url), PATIENCE)
    await store.open()
    await claim_run(store)
    other = sqlite3.connect(make_url(sqlite_url).database or "", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"store\.db failed: OperationalError: database is locked"):
        await store.runs.append(RUN, A, envelopes(1, 1))
    assert await store.runs.get(RUN) is not None
    other.execute("ROLLBACK")
    other.close()
    await works(store, 2)
    await store.aclose()


async def test_a_file_on_a_busy_disk_is_waited_for(sqlite_url: str, listen: Listen) -> None:
    """A disk that is busy with other things may take twenty seconds for one write."""
    store, patience = SqlStore(make_url(sqlite_url)), list[int]()

    def read_patience(connection: DBAPIConnection, *_: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA busy_timeout")
        patience.append(cursor.fetchall()[0][0])

    await store.open()
    listen(Pool, "checkout", read_patience)
    assert await store.runs.get(RUN) is None
    await store.aclose()
    assert min(patience) >= 20_000


async def test_a_full_file_takes_nothing_in_part(sqlite_url: str, listen: Listen) -> None:
    store = SqlStore(make_url(sqlite_url))
    await store.open()
    await claim_run(store)
    full = True

    def limit(connection: DBAPIConnection, *_: object) -> None:
        connection.cursor().execute(f"PRAGMA max_page_count = {1 if full else 1_000_000}")

    listen(Pool, "checkout", limit)
    await store.runs.append(RUN, A, envelopes(1, 1))
    with pytest.raises(StoreUnavailable, match=r"store\.db failed: OperationalError: database or disk is full"):
        await store.runs.finish(RUN, A, envelopes(2, 9, size=500_000), ending())
    full = False
    record = await store.runs.get(RUN)
    assert record is not None
    assert (record.last_seq, record.is_active) == (1, True)
    await works(store, 2)
    await store.aclose()


FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON envelopes FOR EACH STATEMENT EXECUTE FUNCTION full_disk();
"""


async def test_a_full_server_takes_nothing_in_part(postgres_url: str) -> None:
    store = SqlStore(make_url(postgres_url))
    await store.open()
    await claim_run(store)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(FULL.encode())
        with pytest.raises(StoreUnavailable):
            await store.runs.finish(RUN, A, envelopes(1, 3), ending())
        record = await store.runs.get(RUN)
        assert record is not None
        assert (record.last_seq, record.is_active) == (0, True)
        connection.execute("DROP FUNCTION full_disk CASCADE")
    await works(store, 3)
    await store.aclose()


# --- cancelled callers ------------------------------------------------------------------------------------------------


async def test_a_caller_that_is_cancelled_leaves_a_store_that_works(store: Store) -> None:
    await claim_run(store)
    for turns in range(12):
        task = asyncio.create_task(store.runs.append(RUN, A, envelopes(1, 3)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await works(store, 4)


@requirement("durable.whole")
@pytest.mark.parametrize("statement", range(1, 7))
@pytest.mark.parametrize("kind", ["sqlite_url", "postgres_url"])
async def test_a_write_whose_caller_goes_at_any_statement_is_whole_and_leaves_no_lock(
    kind: str, statement: int, listen: Listen, request: pytest.FixtureRequest
) -> None:
    store = SqlStore(make_url(request.getfixturevalue(kind)), PATIENCE * 10)
    await store.open()
    counted, asking = count(1), asyncio.create_task(claim_run(store))

    def go(*_: object) -> None:
        if next(counted) == statement:
            asking.cancel()

    listen(Engine, "before_cursor_execute", go)
    await asyncio.wait([asking])
    await claim_run(store, run("r2", "t2"))
    await store.aclose()  # what has begun comes to its end
    assert await store.runs.get(RUN) is not None
    await store.aclose()


async def test_the_error_names_the_host_and_the_reason_and_no_password() -> None:
    store = open_store(f"postgresql://somebody:{planted('password')}@127.0.0.1:1/postgres")
    with pytest.raises(StoreUnavailable) as raised:
        await store.open()
    assert str(raised.value).startswith("the database at 127.0.0.1:1 failed: OperationalError: connection failed: ")
    search(str(raised.value), "the error of a store")
    await store.aclose()


async def test_the_error_of_a_statement_has_none_of_its_values(sqlite_url: str) -> None:
    store = SqlStore(make_url(sqlite_url))
    await store.open()
    await claim_run(store)
    other = sqlite3.connect(make_url(sqlite_url).database or "")
    other.execute("DROP TABLE envelopes")
    other.close()
    with pytest.raises(StoreUnavailable, match="no such table: envelopes") as raised:
        await store.runs.append(RUN, A, envelopes(1, 1))
    assert RUN.run_id not in str(raised.value)
    assert envelopes(1, 1)[0].data.decode() not in str(raised.value.__cause__)
    await store.aclose()


# --- causes in the log ------------------------------------------------------------------------------------------------


def corrupt(file: Path, _listen: Listen) -> None:
    """Overwrite every page but the first, which says that it is a database."""
    pages = file.stat().st_size // PAGE
    with file.open("r+b") as raw:
        raw.seek(PAGE)
        raw.write(b"\xff" * PAGE * (pages - 1))


def forbid_writing(_file: Path, listen: Listen) -> None:
    """Make each connection one of a file that may only be read; file modes do not keep root from writing."""
    listen(Pool, "checkout", lambda connection, *_: connection.cursor().execute("PRAGMA query_only = 1"))


def fill_disk(_file: Path, listen: Listen) -> None:
    """Let the file not grow any more."""
    listen(Pool, "checkout", lambda connection, *_: connection.cursor().execute("PRAGMA max_page_count = 1"))


async def code_of(service: Service) -> str:
    """The code with which a run is refused or ended."""
    try:
        *_, last = await sent(await service.admit(asking(text="x" * LARGE), caller()))
    except AppError as refused:
        return refused.code
    return str(json.loads(last.data)["code"])


@requirement("durable.gone")
@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (corrupt, "DatabaseError: database disk image is malformed"),
        (forbid_writing, "OperationalError: attempt to write a readonly database"),
        (fill_disk, "OperationalError: database or disk is full"),
    ],
)
async def test_a_file_that_fails_refuses_runs_and_the_log_names_its_cause(
    sqlite_url: str, listen: Listen, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path, Listen], None], cause: str
) -> None:
    file = Path(make_url(sqlite_url).database or "")
    store = SqlStore(make_url(sqlite_url))
    await store.open()
    await store.aclose()  # so that the file has its tables, and not only its log
    service = build_service(Settings(store=SecretStr(sqlite_url)))
    await service.open()
    spoil(file, listen)
    assert await code_of(service) == ErrorCode.STORE_UNAVAILABLE
    assert f"store unavailable error='the database file {file} failed: {cause}'" in caplog.messages
    await service.aclose()


async def test_a_file_that_may_only_be_read_stops_the_start(sqlite_url: str, listen: Listen) -> None:
    store, file = SqlStore(make_url(sqlite_url)), Path(make_url(sqlite_url).database or "")
    await store.open()
    await store.aclose()
    forbid_writing(file, listen)
    with pytest.raises(
        StoreUnavailable, match=f"the database file {file} failed: .*attempt to write a readonly database"
    ):
        await SqlStore(make_url(sqlite_url)).open()


# --- deleted files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_was_deleted_or_replaced_is_noticed_and_used_again_once_it_is_back(
    sqlite_url: str, *, is_replaced: bool
) -> None:
    file = Path(make_url(sqlite_url).database or "")
    store = SqlStore(make_url(sqlite_url))
    await store.open()
    await claim_run(store)
    away = file.rename(file.with_name("away.db"))  # noqa: ASYNC240 - a moment on a local disk
    if is_replaced:
        file.touch()  # noqa: ASYNC240 - as above
    for attempt in (store.runs.append(RUN, A, envelopes(1, 1)), store.runs.get(RUN), store.threads.get(THREAD)):
        with pytest.raises(StoreUnavailable, match=rf"the database file {file} was deleted or replaced"):
            await attempt
    made = file.exists()  # noqa: ASYNC240 - as above
    assert made is is_replaced  # no empty database is made in its place
    away.rename(file)
    await works(store, 2)
    await store.aclose()
