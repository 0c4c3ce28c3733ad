"""Searches in a database for few rows read an index of few rows."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from agui_container.ports.records import ThreadKey
from agui_container.ports.store import Store
from agui_container.stores import open_store
from agui_container.stores.memory import MemoryStore
from tests.executed_lines import lines_of
from tests.stores.doubles import A, claim_run, message, run, store_turn

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


def plans(path: Path, statements: list[tuple[str, object]], table: str = "runs") -> list[str]:
    """Return the plans of the statements that search a table."""
    with closing(sqlite3.connect(path)) as connection:
        searches = [it for it in statements if f" {table}" in it[0] and it[0].startswith(("SELECT", "UPDATE"))]
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


async def test_a_page_of_messages_is_found_without_a_look_at_the_rest_of_its_thread(stored: tuple[Store, Path]) -> None:
    store, path = stored
    key = ThreadKey(ODD, "t3")
    await store_turn(store, *(message(f"m{n}") for n in range(9)), key=run("r", "t3", ODD))
    with recorded() as statements:
        page = await store.threads.messages(key, limit=2, before="m7")
        assert page is not None
        assert [it.id for it in page.items] == ["m5", "m6"]
        assert await store.threads.message(key, "m1") == message("m1")
        assert await store.threads.has_messages(key)
    position, newest, earlier, one, has_any = plans(path, statements, "messages")
    by_position, by_id = "messages_by_position (thread=? AND position<?)", "(thread=? AND digest=?)"
    assert by_id in position
    assert by_position in newest
    assert by_id in newest
    assert by_position in earlier
    assert by_id in one
    assert "(thread=?)" in has_any
    assert "SCAN messages" not in f"{newest}{earlier}{has_any}"


# --- the store in memory ----------------------------------------------------------------------------------------------


SLACK = 50
"""Executed lines by which two pages may differ, for example in their search by halves."""


async def lines_of_pages(threads: int, owner: str) -> int:
    """Return the lines for the first two pages of an owner's threads, of which each owner has as many."""
    store = MemoryStore()
    for number in range(threads):
        for name in ("one", "two"):
            await store_turn(store, key=run(f"r{number}", f"t{number}", name), now=float(number % 7))
    page: str | None = None

    def list_page() -> None:
        nonlocal page
        with pytest.raises(StopIteration) as found:  # no method of this store waits for anything
            store.threads.list(owner, limit=1, page=page).send(None)
        page = found.value.value.next

    return lines_of(list_page) + lines_of(list_page)


@pytest.mark.parametrize("owner", ["one", "nobody"])
async def test_a_page_of_threads_is_no_more_work_among_more_threads(owner: str) -> None:
    few, many = await lines_of_pages(10, owner), await lines_of_pages(400, owner)
    assert many < few + SLACK
