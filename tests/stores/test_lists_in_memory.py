"""A page of a list in memory takes the same work however many threads there are."""

import pytest

from agui_container.stores.memory import MemoryStore
from tests.executed_lines import lines_of
from tests.stores.doubles import run, store_turn

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
