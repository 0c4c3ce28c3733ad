"""Appends of several runs at once are one transaction, and a failed append does not affect the others."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Engine, make_url

from agui_container.ports.records import RunKey
from agui_container.ports.store import LeaseLost
from agui_container.stores.sql.store import SqlStore
from tests.stores.conftest import Listen
from tests.stores.doubles import A, B, claim_run, envelopes, run

RUNS = [run(f"r{number}", f"t{number}") for number in range(20)]


@pytest.fixture(params=["sqlite_url", pytest.param("postgres_url", marks=pytest.mark.services)])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[SqlStore]:
    store = SqlStore(make_url(request.getfixturevalue(request.param)))
    await store.open()
    for key in RUNS:
        await claim_run(store, key, lease=-1.0 if key == RUNS[3] else 15.0)
    yield store
    await store.aclose()


async def put(store: SqlStore, *keys: RunKey, first: int = 1, last: int = 3) -> list[BaseException | None]:
    asked = (store.append(key, A, envelopes(first, last, key.run_id)) for key in keys)
    return await asyncio.gather(*asked, return_exceptions=True)


async def test_appends_of_many_runs_at_once_are_few_transactions(database: SqlStore, listen: Listen) -> None:
    commits: list[object] = []
    listen(Engine, "commit", commits.append)
    assert await put(database, *RUNS) == [None] * len(RUNS)
    assert len(commits) == 1
    assert await put(database, *RUNS, first=4, last=4) == [None] * len(RUNS)
    assert len(commits) == 2
    for key in RUNS:
        assert list(await database.envelopes(key, 0)) == envelopes(1, 4, key.run_id)


async def test_a_run_that_was_taken_does_not_keep_the_others(database: SqlStore) -> None:
    (taken,) = await database.take_over(B, 15.0)
    assert taken.key == RUNS[3]
    heard = await put(database, *RUNS)
    assert isinstance(heard.pop(3), LeaseLost)
    assert heard == [None] * (len(RUNS) - 1)
    assert list(await database.envelopes(RUNS[3], 0)) == []
    assert list(await database.envelopes(RUNS[4], 0)) == envelopes(1, 3, "r4")


async def test_an_append_that_comes_twice_is_stored_once(database: SqlStore) -> None:
    asked = [RUNS[0], RUNS[1], RUNS[0], RUNS[1], RUNS[0]]
    assert await put(database, *asked) == [None] * len(asked)
    heard = await put(database, RUNS[2], RUNS[0], first=5, last=6)
    assert all(isinstance(error, ValueError) for error in heard)  # a gap
    for key in RUNS[:2]:
        assert list(await database.envelopes(key, 0)) == envelopes(1, 3, key.run_id)
