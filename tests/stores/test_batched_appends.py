"""Appends of several runs at once are one transaction, and a failed append does not affect the others."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest
from sqlalchemy import Engine, make_url
from sqlalchemy.exc import DataError
from sqlalchemy.ext.asyncio import AsyncConnection

from agui_container.ports.records import RunKey
from agui_container.ports.store import LeaseLost, StoreUnavailable
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.sql import envelopes as writing
from agui_container.stores.sql.store import SqlStore
from tests.requirements import requirement
from tests.stores.conftest import Listen
from tests.stores.doubles import A, B, claim_run, envelopes, run

RUNS = [run(f"r{number}", f"t{number}") for number in range(20)]
REFUSED = b'{"n":"refused"}'


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[SqlStore]:
    """A store with twenty runs."""
    store = SqlStore(make_url(request.getfixturevalue(request.param)))
    await store.open()
    for key in RUNS:
        await claim_run(store, key)
    yield store
    await store.aclose()


async def put(store: SqlStore, *keys: RunKey, first: int = 1, last: int = 3) -> list[BaseException | None]:
    """Append to all of them at once. Returns each result."""
    asked = (store.runs.append(key, A, envelopes(first, last, key.run_id)) for key in keys)
    return await asyncio.gather(*asked, return_exceptions=True)


@requirement("durable.together")
async def test_appends_of_many_runs_at_once_are_few_transactions(database: SqlStore, listen: Listen) -> None:
    commits: list[object] = []
    listen(Engine, "commit", commits.append)
    assert await put(database, *RUNS) == [None] * len(RUNS)
    assert len(commits) == 1
    assert await put(database, *RUNS, first=4, last=4) == [None] * len(RUNS)
    assert len(commits) == 2
    for key in RUNS:
        assert list(await database.runs.envelopes(key, 0)) == envelopes(1, 4, key.run_id)


@requirement("durable.together", "replica.thread")
async def test_a_run_that_was_taken_does_not_keep_the_others(database: SqlStore) -> None:
    taken = await database.runs.get(RUNS[3])
    assert taken is not None
    assert await database.runs.take_over(taken, B, 300.0)
    heard = await put(database, *RUNS)
    assert isinstance(heard.pop(3), LeaseLost)
    assert heard == [None] * (len(RUNS) - 1)
    assert list(await database.runs.envelopes(RUNS[3], 0)) == []
    assert list(await database.runs.envelopes(RUNS[4], 0)) == envelopes(1, 3, "r4")


@requirement("durable.together")
async def test_an_append_that_comes_twice_is_stored_once(database: SqlStore) -> None:
    asked = [RUNS[0], RUNS[1], RUNS[0], RUNS[1], RUNS[0]]
    assert await put(database, *asked) == [None] * len(asked)
    heard = await put(database, RUNS[2], RUNS[0], first=5, last=6)
    assert all(isinstance(error, ValueError) for error in heard)  # a gap
    for key in RUNS[:2]:
        assert list(await database.runs.envelopes(key, 0)) == envelopes(1, 3, key.run_id)


@requirement("durable.together")
async def test_an_append_that_fails_in_a_batch_is_tried_alone(
    database: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = writing.insert_envelopes

    async def picky(connection: AsyncConnection, rows: Sequence[tuple[int, Envelope]]) -> None:
        if any(envelope.data == REFUSED for _, envelope in rows):
            raise DataError("insert", None, ValueError("refused"))
        await insert(connection, rows)

    monkeypatch.setattr(writing, "insert_envelopes", picky)
    (some,) = envelopes(1, 1)
    odd = [Envelope("r1", 1, some.type, REFUSED)]

    async def tried() -> list[type]:
        asked = (
            database.runs.append(key, A, odd if key is RUNS[1] else envelopes(1, 3, key.run_id)) for key in RUNS[:5]
        )
        return [type(heard) for heard in await asyncio.gather(*asked, return_exceptions=True)]

    assert await tried() == [type(None), StoreUnavailable, *[type(None)] * 3]


@requirement("durable.whole")
async def test_a_caller_that_leaves_takes_nothing_from_the_others(database: SqlStore) -> None:
    tasks = [asyncio.create_task(database.runs.append(key, A, envelopes(1, 3, key.run_id))) for key in RUNS]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True, False] * 10
    assert await put(database, *RUNS, first=4, last=4) == [None] * len(RUNS)


@requirement("durable.together")
async def test_a_run_whose_row_somebody_holds_does_not_hold_up_the_others(postgres_url: str) -> None:
    store = SqlStore(make_url(postgres_url))
    await store.open()
    for key in RUNS:
        await claim_run(store, key)
    async with await psycopg.AsyncConnection.connect(postgres_url) as holder:
        await holder.execute("SELECT 1 FROM runs WHERE run_id = 'r3' FOR UPDATE")
        held = asyncio.create_task(put(store, RUNS[3]))
        assert await put(store, *RUNS[:3], *RUNS[4:]) == [None] * (len(RUNS) - 1)
        assert await put(store, RUNS[0], first=4, last=4) == [None]
        assert not held.done()
    assert await held == [None]
    await store.aclose()


@requirement("durable.together")
async def test_an_error_that_nobody_expected_is_one_runs_own(
    database: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = writing.insert_envelopes

    async def picky(connection: AsyncConnection, rows: Sequence[tuple[int, Envelope]]) -> None:
        if any(envelope.run_id == "r1" for _, envelope in rows):
            raise TypeError("odd")
        await insert(connection, rows)

    monkeypatch.setattr(writing, "insert_envelopes", picky)
    heard = await put(database, *RUNS[:5])
    assert [type(error) for error in heard] == [type(None), TypeError, *[type(None)] * 3]
