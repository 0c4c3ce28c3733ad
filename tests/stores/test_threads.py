"""Threads in every store: lists, titles, forks, and the end of one with all of it."""

import pytest

from agui_container.ports import records
from agui_container.ports.store import READ_BYTES, BadToken, CannotFork, Delete, Fork, Rename, Store
from tests.stores.doubles import (
    RUN,
    THREAD,
    A,
    begin,
    claim,
    claim_run,
    ending,
    get_delta,
    get_thread,
    message,
    run,
    store_turn,
    thread_of,
)


async def list_all_ids(store: Store, owner: str, limit: int) -> list[str]:
    found: list[str] = []
    page = None
    while True:
        part = await store.threads(owner, limit=limit, page=page)
        found += [thread.key.thread_id for thread in part.items]
        page = part.next
        if page is None:
            return found


async def test_threads_are_listed_by_their_last_change(store: Store) -> None:
    for n in range(7):
        await store_turn(store, key=run("r", f"t{n}"), now=float(n // 2))
    await store_turn(store, key=run("r", "x", "another"))
    newest_first = [f"t{n}" for n in reversed(range(7))]
    assert await list_all_ids(store, "owner", 100) == await list_all_ids(store, "owner", 3) == newest_first
    await claim_run(store, run("again", "t2"), now=50.0)
    assert (await list_all_ids(store, "owner", 3))[:2] == ["t2", "t6"]


async def test_a_thread_can_be_renamed_and_keeps_its_place(store: Store) -> None:
    await store_turn(store)
    for title in ("First", "Second", None):
        renamed = await store.edit(THREAD, Rename(title))
        assert renamed is not None
        assert renamed == await thread_of(store)
        assert (renamed.title, renamed.changed_at) == (title, 101.0)
    assert await store.edit(records.ThreadKey("another", "t1"), Rename("Mine")) is None


async def test_an_end_gives_a_title_only_to_a_thread_without_one(store: Store) -> None:
    await store_turn(store)
    await store.edit(THREAD, Rename("Chosen"))
    await claim_run(store, run("r2"))
    await store.finish(run("r2"), A, [], ending(records.Change(title="Made")))
    assert (await get_thread(store)).title == "Chosen"


async def test_a_deleted_thread_leaves_nothing(store: Store) -> None:
    await claim_run(store)
    await store.finish(RUN, A, [], ending(records.Change([message("m1")])))
    await store.put_notes(THREAD, [records.ThreadNote("call", "n", b"{}")])
    await store_turn(store, message("m1"), key=run("r1", "t2"))
    assert await store.edit(THREAD, Delete())
    assert await store.edit(THREAD, Delete()) is None
    assert await thread_of(store, THREAD) is None
    assert await store.thread(THREAD) is None
    assert await store.run(RUN) is None
    assert await list_all_ids(store, "owner", 10) == ["t2"]
    assert isinstance(await begin(store, claim()), records.Begun)


async def test_another_owner_cannot_reach_a_thread(store: Store) -> None:
    await store_turn(store, message("m1"))
    strange = records.ThreadKey("another", "t1")
    assert await thread_of(store, strange) is None
    assert await store.thread(strange) is None
    assert await store.edit(strange, Delete()) is None
    assert not await store.put_notes(strange, [records.ThreadNote("call", "n", b"{}")])
    assert await store.edit(strange, Fork("m1", "t9", 1.0)) is None
    assert await thread_of(store, THREAD) is not None


async def list_pages(store: Store, limit: int) -> list[list[str]]:
    found: list[list[str]] = []
    before = None
    while True:
        page = await store.messages(THREAD, limit=limit, before=before)
        assert page is not None
        found.append([message.id for message in page.items])
        before = page.next
        if before is None:
            return found


async def test_messages_are_read_page_by_page_from_the_end(store: Store) -> None:
    await forkable(store)  # m1, m3, m2, m4
    await store_turn(store, message("m5"), message("m6"), key=run("r2"))
    assert await list_pages(store, 4) == [["m2", "m4", "m5", "m6"], ["m1", "m3"]]
    assert await list_pages(store, 3) == [["m4", "m5", "m6"], ["m1", "m3", "m2"]]
    assert await list_pages(store, 100) == [["m1", "m3", "m2", "m4", "m5", "m6"]]
    page = await store.messages(THREAD, limit=1, before="m2")
    assert page == records.Page([message("m3", run_id="r1")], "m3")
    assert await store.messages(THREAD, before="m1") == records.Page([])


async def test_a_page_of_large_messages_has_fewer(store: Store) -> None:
    await store_turn(store, *(message(f"m{n}", "x" * (READ_BYTES // 3)) for n in range(1, 5)), message("m5"))
    await store_turn(store, message("m6", "x" * 2 * READ_BYTES), key=run("r2"))
    assert await list_pages(store, 100) == [["m6"], ["m2", "m3", "m4", "m5"], ["m1"]]


async def test_messages_are_read_up_to_one(store: Store) -> None:
    await store_turn(store, message("m1", "one", "r1"), message("\0", "two"), message("m3"))
    assert await store.messages(THREAD, limit=1, last="\0") == records.Page([message("\0", "two")], "\0")
    assert await store.messages(THREAD, last="\0") == records.Page([message("m1", "one", "r1"), message("\0", "two")])
    for unknown in (store.messages(THREAD, last="m2"), store.messages(THREAD, before="m2")):
        with pytest.raises(BadToken):
            await unknown
    assert await store.messages(records.ThreadKey("another", "t1"), last="m1") is None


async def forkable(store: Store) -> None:
    await claim_run(store)
    change = records.Change(
        [message(f"m{n}", run_id="r1") for n in range(1, 5)], ["m1", "m3", "m2", "m4"], b'{"s":1}', "Title"
    )
    await store.finish(RUN, A, [], ending(change))


async def test_a_fork_has_the_history_up_to_a_message(store: Store) -> None:
    await forkable(store)
    record = await store.edit(THREAD, Fork("m2", "f1", 300.0))
    assert record is not None
    assert record == await thread_of(store, records.ThreadKey("owner", "f1"))
    assert (record.forked_from, record.title, record.created_at) == (("t1", "m2"), "Title", 300.0)
    assert record.status is records.ThreadStatus.USER_TURN
    delta = await get_delta(store, record.key)
    assert list(delta.messages) == [message("m1"), message("m3"), message("m2")]
    assert delta.state == b'{"s":1}'


async def test_a_fork_and_its_origin_go_their_own_ways(store: Store) -> None:
    await forkable(store)
    record = await store.edit(THREAD, Fork("m4", "f1", 300.0))
    assert record is not None
    before = await store.thread(THREAD)
    fork = await get_delta(store, record.key)
    await claim_run(store, run("r1", "f1"), change=records.Change([message("m1", "changed"), message("m5")]))
    assert await store.thread(THREAD) == before
    news = await get_delta(store, record.key, fork.next)
    assert (list(news.messages), news.order) == ([message("m1", "changed"), message("m5")], None)
    assert await store.edit(THREAD, Delete())
    assert await thread_of(store, record.key) is not None


async def test_a_fork_that_is_asked_for_again_is_the_first_one(store: Store) -> None:
    await forkable(store)
    first = await store.edit(THREAD, Fork("m2", "f1", 300.0))
    assert await store.edit(THREAD, Fork("m2", "f1", 400.0)) == first
    with pytest.raises(CannotFork) as taken:
        await store.edit(THREAD, Fork("m4", "f1", 400.0))
    assert taken.value.id_exists
    with pytest.raises(CannotFork) as unknown:
        await store.edit(THREAD, Fork("m9", "f2", 400.0))
    assert not unknown.value.id_exists
