"""Searches in a database for few rows read an index of few rows."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from agui_container.ports.store import Store
from agui_container.stores import open_store
from tests.stores.doubles import A, claim_run, run, store_turn

ACTIVE, ALL = "USING INDEX runs_one_active_per_thread", "SCAN runs"
ODD = "o\\w'ner"


@pytest.fixture
async def stored(tmp_path: Path) -> AsyncIterator[tuple[Store, Path]]:
    """A store with one active run among ended ones, and its file."""
    path = tmp_path / "runs.db"
    store = open_store(f"sqlite:///{path}")
    await store.open()
    for number in range(3):
        await store_turn(store, key=run("r", f"t{number}", ODD))
    await claim_run(store, run("active", "t1", ODD))
    yield store, path
    await store.aclose()


@contextmanager
def recorded() -> Iterator[list[tuple[str, object]]]:
    """Give the statements that are executed in the block, with their parameters."""
    statements = list[tuple[str, object]]()

    def record(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
        statements.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", record)


def plans(path: Path, statements: list[tuple[str, object]]) -> list[str]:
    """Return the plans of the statements that search for runs."""
    with closing(sqlite3.connect(path)) as connection:
        searches = [it for it in statements if " runs" in it[0] and it[0].startswith(("SELECT", "UPDATE"))]
        return [
            "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))  # type: ignore[arg-type]
            for sql, values in searches
        ]


async def test_active_runs_are_found_without_a_look_at_those_that_have_ended(stored: tuple[Store, Path]) -> None:
    store, path = stored
    with recorded() as statements:
        for owner in (ODD, None):
            (listed,) = (await store.runs.list(owner, active=True)).items
            assert listed.key.run_id == "active"
        assert (await store.runs.list("nobody", active=True)).items == []
        (lease,) = await store.runs.renew(A, 1e9)
        assert lease.key.run_id == "active"
        assert len(await store.runs.expired(2e9)) == 1
    found = plans(path, statements)
    assert len(found) == 5
    assert all(ACTIVE in plan for plan in found), found
    assert not any(step == ALL for plan in found for step in plan.split("; "))
