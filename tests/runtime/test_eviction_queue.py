"""Entries in memory are evicted in their order, the oldest first."""

import pytest

from agui_container.runtime.eviction_queue import EvictionQueue


def trim(queue: EvictionQueue[str]) -> list[str]:
    """Remove entries until the limits are met."""
    removed = list[str]()
    while queue.is_full:
        removed.append(next(iter(queue)))
        queue.remove(removed[-1])
    return removed


@pytest.mark.parametrize(("max_items", "max_bytes"), [(2, 1_000), (100, 20)])
def test_the_oldest_entries_are_evicted_when_there_are_too_many_or_they_are_too_large(
    max_items: int, max_bytes: int
) -> None:
    queue = EvictionQueue[str](max_items, max_bytes)
    for name in "abcd":
        queue.put(name, 10)
    assert trim(queue) == ["a", "b"]
    assert (list(queue), len(queue), "a" in queue) == (["c", "d"], 2, False)


def test_an_entry_that_is_written_again_is_the_newest_and_one_that_is_resized_keeps_its_place() -> None:
    queue = EvictionQueue[str](100, 20)
    for name in "ab":
        queue.put(name, 10)
    queue.put("a", 10)
    queue.resize("b", 11)
    queue.remove("unknown")
    assert trim(queue) == ["b"]
