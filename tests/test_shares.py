"""Entries in memory are evicted in a fair order: the largest account's first, so no account evicts another's."""

from collections.abc import Hashable
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from agui_container.runtime.shares import EvictionQueue

K = TypeVar("K", bound=Hashable)

STEPS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 5), st.integers(0, 9), st.booleans()),
    max_size=40,
)


def trim(queue: EvictionQueue[K]) -> list[K]:
    """Remove candidates until the limits are met or no candidate is left."""
    removed = []
    while queue.is_full and (key := next(queue.candidates(), None)) is not None:
        queue.remove(key)
        removed.append(key)
    return removed


@given(STEPS)
def test_sums_are_those_of_the_entries(steps: list[tuple[str, int, int, bool]]) -> None:
    queue, entries = EvictionQueue[tuple[str, int]](6, 20), dict[tuple[str, int], int]()
    for account, number, size, is_removed in steps:
        if is_removed:
            queue.remove((account, number))
            entries.pop((account, number), None)
        else:
            queue.put((account, number), account, size)
            entries.pop((account, number), None)
            entries[account, number] = size
        for key in trim(queue):
            del entries[key]
        assert (queue.items.total, queue.bytes.total) == (len(entries), sum(entries.values()))
        assert len(queue) == len(entries) <= 6
        assert [queue.items.of(account) for account in "abcd"] == [
            sum(owner == account for owner, _ in entries) for account in "abcd"
        ]
        assert all(list(queue.of(account)) == [key for key in entries if key[0] == account] for account in "abcd")


@given(STEPS)
def test_an_account_with_more_than_half_pushes_out_its_own_entries_only(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    queue = EvictionQueue[tuple[str, int]](6, 1_000)
    for account, number, size, _ in steps:
        queue.put((account, number), account, size)
        has_more_than_half = [account for account in "abcd" if 2 * queue.items.of(account) > 6]
        assert {owner for owner, _ in trim(queue)} <= set(has_more_than_half or "abcd")


def test_the_oldest_entry_of_the_largest_account_goes_first() -> None:
    queue = EvictionQueue[str](8, 1_000)
    for key in ("old", "a1", "a2", "a3", "b1", "b2", "a4", "new", "a5"):
        queue.put(key, key[0], 1)
    assert trim(queue) == ["a1"]
    assert list(queue.candidates()) == ["old", "a2", "a3", "b1", "b2", "a4", "new", "a5"]


def test_small_accounts_are_treated_alike() -> None:
    queue = EvictionQueue[str](8, 1_000)
    for key in ("a1", "b1", "b2", "c1", "d1", "e1", "f1", "g1", "h1"):
        queue.put(key, key[0], 1)
    assert trim(queue) == ["a1"]


def test_an_entry_that_is_put_again_is_the_newest_and_one_that_is_resized_is_not() -> None:
    queue = EvictionQueue[str](2, 100)
    queue.put("a", "x", 10)
    queue.put("b", "x", 10)
    queue.put("a", "x", 20)
    queue.resize("b", 30)
    assert (list(queue.of("x")), queue.bytes.of("x")) == (["b", "a"], 50)
    queue.resize("b", 90)
    assert trim(queue) == ["b"]
