"""A database that is gone, slow, locked or full: one kind of error, and all is well once it is back."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import Pool, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.util import await_only

from agui_container.ports.records import ThreadNote
from agui_container.ports.store import DurableStore, StoreUnavailable
from agui_container.stores import open_store
from agui_container.stores.sql.database import CONNECTIONS
from agui_container.stores.sql.store import SqlStore
from tests.engine.doubles import eventually
from tests.relay import relay_to
from tests.secret_search import planted, search
from tests.stores.conftest import Listen
from tests.stores.doubles import RUN, THREAD, A, claim_run, ending, envelopes, get_run, run, thread_of

PATIENCE = 0.5
"""Timeout of a store whose database does not answer."""

AMPLE = 60.0
"""Timeout of a store whose database answers, however slow the machine is."""

NOTE = ThreadNote("call", "n", b"{}", is_settled=True)


async def works(store: DurableStore, last_seq: int) -> None:
    await store.append(RUN, A, envelopes(1, last_seq))
    assert list(await store.envelopes(RUN, 0)) == envelopes(1, last_seq)
    await store.finish(RUN, A, [], ending())
    assert await thread_of(store, THREAD) is not None


async def appends_at_last(store: DurableStore, last_seq: int) -> None:
    """Repeat an append until it is in time, because the store of a test gives up soon and the machine may be slow."""
    while True:
        with suppress(StoreUnavailable):
            return await store.append(RUN, A, envelopes(1, last_seq))


async def claim_by_another_store(url: str) -> None:
    """Claim the run with a store that waits as long as a server does."""
    store = SqlStore(make_url(url))
    await store.open()
    await claim_run(store)
    await store.aclose()


@pytest.mark.services
async def test_a_database_that_comes_back_is_used_again(postgres_url: str) -> None:
    url = make_url(postgres_url)
    async with relay_to(url.port or 0) as relay:
        store = SqlStore(url.set(port=relay.port), AMPLE)
        await store.open()
        await claim_run(store)
        await store.append(RUN, A, envelopes(1, 1))
        await relay.cut()
        for use in (store.append(RUN, A, envelopes(2, 2)), store.envelopes(RUN, 0), store.thread(THREAD)):
            with pytest.raises(StoreUnavailable):
                await use
        await relay.restore()
        await works(store, 3)
        await store.aclose()


@pytest.mark.services
async def test_a_database_that_does_not_answer_is_not_waited_for(postgres_url: str) -> None:
    url = make_url(postgres_url)
    async with relay_to(url.port or 0) as relay:
        await claim_by_another_store(postgres_url)
        store = SqlStore(url.set(port=relay.port), PATIENCE)
        await store.open()
        relay.flows.clear()
        with pytest.raises(StoreUnavailable):
            await store.append(RUN, A, envelopes(1, 1))
        relay.flows.set()
        await appends_at_last(store, 2)
        await store.aclose()


USES: dict[str, Callable[[DurableStore], Awaitable[object]]] = {
    "an append": lambda store: store.append(RUN, A, envelopes(1, 1)),
    "a claim": lambda store: claim_run(store, run("r2", "t2")),
    "a read of events": lambda store: store.envelopes(RUN, 0),
    "a read of a thread": lambda store: store.thread(THREAD),
    "a new note": lambda store: store.put_notes(THREAD, [NOTE]),
    "a read of notes": lambda store: store.notes(THREAD, "call"),
    "an answer": lambda store: store.settle_note(THREAD, NOTE),
    "a renewed lease": lambda store: store.renew(A, 15.0),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.services
async def test_a_server_that_restarts_costs_no_more_than_the_calls_under_way(
    postgres_url: str, use: Callable[[DurableStore], Awaitable[object]]
) -> None:
    store = SqlStore(make_url(postgres_url), AMPLE)
    await store.open()
    await claim_run(store)
    await asyncio.gather(*(thread_of(store, THREAD) for _ in range(CONNECTIONS)))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    await use(store)
    await works(store, 2)
    await store.aclose()


async def test_a_file_that_another_program_has_locked_is_not_waited_for(sqlite_url: str) -> None:
    await claim_by_another_store(sqlite_url)
    store = SqlStore(make_url(sqlite_url), PATIENCE)
    await store.open()
    other = sqlite3.connect(make_url(sqlite_url).database or "", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"store\.db failed: OperationalError: database is locked"):
        await store.append(RUN, A, envelopes(1, 1))
    assert await store.run(RUN) is not None
    other.execute("ROLLBACK")
    other.close()
    await appends_at_last(store, 2)
    await store.aclose()


async def test_a_full_file_takes_nothing_in_part(sqlite_url: str, listen: Listen) -> None:
    store = SqlStore(make_url(sqlite_url))
    await store.open()
    await claim_run(store)
    full = True

    def limit(connection: DBAPIConnection, *_: object) -> None:
        connection.cursor().execute(f"PRAGMA max_page_count = {1 if full else 1_000_000}")

    listen(Pool, "checkout", limit)
    await store.append(RUN, A, envelopes(1, 1))
    with pytest.raises(StoreUnavailable, match=r"store\.db failed: OperationalError: database or disk is full"):
        await store.finish(RUN, A, envelopes(2, 9, size=500_000), ending())
    full = False
    record = await get_run(store)
    assert (record.last_seq, record.is_open) == (1, True)
    await works(store, 2)
    await store.aclose()


async def test_a_caller_that_is_cancelled_leaves_a_store_that_works(durable: DurableStore) -> None:
    await claim_run(durable)
    for turns in range(12):
        task = asyncio.create_task(durable.append(RUN, A, envelopes(1, 3)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await works(durable, 4)


@pytest.mark.parametrize("statement", range(1, 7))
@pytest.mark.parametrize("kind", ["sqlite_url", pytest.param("postgres_url", marks=pytest.mark.services)])
async def test_a_write_whose_caller_goes_at_any_statement_is_whole_and_leaves_no_lock(
    kind: str, statement: int, listen: Listen, request: pytest.FixtureRequest
) -> None:
    store = SqlStore(make_url(request.getfixturevalue(kind)), AMPLE)
    await store.open()
    counted, asking = count(1), asyncio.create_task(claim_run(store))

    def go(*_: object) -> None:
        if next(counted) == statement:
            asking.cancel()

    listen(SqlEngine, "before_cursor_execute", go)
    await asyncio.wait([asking])
    await claim_run(store, run("r2", "t2"))
    await store.aclose()  # what has begun comes to its end
    await store.open()
    assert await store.run(RUN) is not None
    await store.aclose()


async def test_a_store_that_is_not_open_refuses_every_call(sqlite_url: str) -> None:
    store, file = SqlStore(make_url(sqlite_url)), Path(make_url(sqlite_url).database or "")
    for use in USES.values():
        with pytest.raises(StoreUnavailable, match=f"the database file {file} is not open"):
            await use(store)
    assert not file.exists()  # noqa: ASYNC240 - a moment on a local disk


async def test_no_connection_outlives_a_store_that_closes_during_slow_work(sqlite_url: str, listen: Listen) -> None:
    store = SqlStore(make_url(sqlite_url), timeout=1e-9)
    connections, may_begin = Counter[str](), asyncio.Event()

    def hold(*_: object) -> None:
        await_only(may_begin.wait())

    for change in ("connect", "checkout", "close"):
        listen(Pool, change, lambda *_, change=change: connections.update([change]))
    await store.open()
    listen(SqlEngine, "before_cursor_execute", hold)
    reading = [asyncio.create_task(store.run(RUN)) for _ in range(3)]
    await eventually(lambda: connections["checkout"] > len(reading))
    closing = asyncio.create_task(store.aclose())
    for _ in range(10):
        await asyncio.sleep(0)
    may_begin.set()
    await asyncio.gather(closing, *reading, return_exceptions=True)
    for late in (store.run(RUN), store.append(RUN, A, envelopes(1, 1))):
        with pytest.raises(StoreUnavailable, match="is not open"):
            await late
    assert connections["close"] == connections["connect"]


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
        await store.append(RUN, A, envelopes(1, 1))
    assert RUN.run_id not in str(raised.value)
    assert envelopes(1, 1)[0].data.decode() not in str(raised.value.__cause__)
    await store.aclose()


async def test_a_file_that_may_only_be_read_stops_the_start(sqlite_url: str, listen: Listen) -> None:
    store, file = SqlStore(make_url(sqlite_url)), Path(make_url(sqlite_url).database or "")
    await store.open()
    await store.aclose()
    # File modes do not keep root from writing.
    listen(Pool, "checkout", lambda connection, *_: connection.cursor().execute("PRAGMA query_only = 1"))
    with pytest.raises(
        StoreUnavailable, match=f"the database file {file} failed: .*attempt to write a readonly database"
    ):
        await SqlStore(make_url(sqlite_url)).open()


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
    for attempt in (store.append(RUN, A, envelopes(1, 1)), store.run(RUN), thread_of(store, THREAD)):
        with pytest.raises(StoreUnavailable, match=rf"the database file {file} was deleted or replaced"):
            await attempt
    made = file.exists()  # noqa: ASYNC240 - as above
    assert made is is_replaced  # no empty database is made in its place
    away.rename(file)
    await works(store, 2)
    await store.aclose()
