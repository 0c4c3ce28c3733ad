"""Threads in every store: lists, titles, forks, and the end of one with all of it."""

import pytest
from msgspec.structs import replace
from pydantic_core import from_json

from agui_container.ports.records import (
    Change,
    Claimed,
    Feedback,
    InterruptScope,
    Page,
    PendingInterrupt,
    RunKey,
    ThreadKey,
    ThreadStatus,
)
from agui_container.ports.store import READ_BYTES, BadToken, CannotFork, Fork, Store
from tests.stores.doubles import RUN, THREAD, A, claim, claim_run, ending, envelopes, message, run, store_turn


async def list_all_ids(store: Store, owner: str, limit: int) -> list[str]:
    """The ids of all pages."""
    found: list[str] = []
    page = None
    while True:
        part = await store.threads.list(owner, limit=limit, page=page)
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


@pytest.mark.parametrize("page", ["", "x", "1", "1:", ":1", "1:x", "1:nan", "1:inf", "-1:1.0", f"{2**63}:1.0"])
async def test_a_page_that_this_list_did_not_give_is_refused(store: Store, page: str) -> None:
    await store_turn(store)
    with pytest.raises(BadToken):
        await store.threads.list("owner", page=page)


@pytest.mark.parametrize("page", ["", "x", "-1", "1:1.0", f"{2**63}"])
async def test_a_page_of_feedback_that_was_not_given_is_refused(store: Store, page: str) -> None:
    with pytest.raises(BadToken):
        await store.feedbacks.reviews(page=page)
    with pytest.raises(BadToken):
        await store.runs.list("owner", page=page)


async def test_a_list_ends_with_its_last_page(store: Store) -> None:
    for n in range(4):
        await store_turn(store, key=run("r", f"t{n}"), now=1.0)
    first = await store.threads.list("owner", limit=2)
    assert first.next is not None
    assert (await store.threads.list("owner", limit=2, page=first.next)).next is None
    assert (await store.threads.list("nobody")).items == []


async def test_a_thread_can_be_renamed(store: Store) -> None:
    await store_turn(store)
    for title, now in (("First", 5.0), ("Second", 6.0), (None, 7.0)):
        assert await store.threads.rename(THREAD, title, now)
        thread = await store.threads.get(THREAD)
        assert thread is not None
        assert (thread.title, thread.changed_at) == (title, now)
    assert not await store.threads.rename(ThreadKey("another", "t1"), "Mine", 8.0)


async def test_notes_are_put_into_the_metadata_of_a_thread_by_their_names(store: Store) -> None:
    await store_turn(store, message("m1"))
    before = await store.threads.changes(THREAD)
    assert before is not None
    assert before.thread.metadata is None
    assert await store.threads.annotate(THREAD, {"pinned": True, "words": ["\0", "ü"]})
    assert await store.threads.annotate(THREAD, {"pinned": None, "visibility": "org"})
    after = await store.threads.changes(THREAD, before.next)
    assert after is not None
    assert after.thread == replace(before.thread, metadata=after.thread.metadata)
    assert from_json(after.thread.metadata or b"") == {"words": ["\0", "ü"], "visibility": "org"}
    assert after.next != before.next
    assert not await store.threads.annotate(ThreadKey("another", "t1"), {"pinned": True})


async def test_runs_and_titles_leave_the_metadata_as_it_is_and_a_fork_begins_without(store: Store) -> None:
    await store_turn(store, message("m1"))
    await store.threads.annotate(THREAD, {"pinned": True})
    await store_turn(store, message("m2"), key=run("r2"))
    await store.threads.rename(THREAD, "Chosen", 5.0)
    fork = await store.threads.fork(Fork(THREAD, "m1", "t9", 6.0))
    (thread,) = [it for it in (await store.threads.list("owner")).items if it.key == THREAD]
    assert (from_json(thread.metadata or b""), fork.metadata) == ({"pinned": True}, None)
    await store.threads.annotate(THREAD, {"pinned": None})
    thread = await store.threads.get(THREAD) or thread
    assert thread.metadata is None


async def test_an_end_gives_a_title_only_to_a_thread_without_one(store: Store) -> None:
    await store_turn(store)
    await store.threads.rename(THREAD, "Chosen", 5.0)
    await claim_run(store, run("r2"))
    await store.runs.finish(run("r2"), A, [], ending(Change(title="Made")))
    thread = await store.threads.get(THREAD)
    assert thread is not None
    assert thread.title == "Chosen"


async def test_a_deleted_thread_leaves_nothing(store: Store) -> None:
    await claim_run(store)
    await store.runs.finish(RUN, A, envelopes(1, 3), ending(Change([message("m1")])))
    await store.feedbacks.put(THREAD, Feedback("m1", "positive", (), None, 1.0, 1.0))
    places = InterruptScope(1, *THREAD), InterruptScope(1, *THREAD, "t1/s")
    others = InterruptScope(1, "owner", "t1/s"), InterruptScope(1, "owner", "t2", "t1")
    for place in (*places, *others):
        await store.interrupts.put(place, [PendingInterrupt("i", b"{}", 1e9)])
    await store_turn(store, message("m1"), key=run("r1", "t2"))
    assert await store.threads.delete(THREAD)
    assert not await store.threads.delete(THREAD)
    assert await store.threads.get(THREAD) is None
    assert await store.threads.changes(THREAD) is None
    assert await store.runs.get(RUN) is None
    assert list(await store.runs.envelopes(RUN, 0)) == []
    assert list(await store.feedbacks.list_for(THREAD)) == []
    assert list((await store.feedbacks.reviews()).items) == []
    assert [bool(await store.interrupts.list_open(place, 1.0)) for place in places] == [False, False]
    assert [bool(await store.interrupts.list_open(place, 1.0)) for place in others] == [True, True]
    assert await list_all_ids(store, "owner", 10) == ["t2"]
    assert isinstance(await store.runs.claim(claim()), Claimed)
    assert list(await store.runs.envelopes(RUN, 0)) == []


async def test_another_owner_cannot_reach_a_thread(store: Store) -> None:
    await store_turn(store, message("m1"))
    strange = ThreadKey("another", "t1")
    assert await store.threads.get(strange) is None
    assert await store.threads.changes(strange) is None
    assert not await store.threads.delete(strange)
    assert await store.feedbacks.put(strange, Feedback("m1", "positive", (), None, 1.0, 1.0)) is None
    with pytest.raises(CannotFork):
        await store.threads.fork(Fork(strange, "m1", "t9", 1.0))
    assert await store.threads.get(THREAD) is not None


# --- messages ---------------------------------------------------------------------------------------------------------


async def list_pages(store: Store, limit: int) -> list[list[str]]:
    """The ids of the messages of all pages, from the end of the thread on."""
    found: list[list[str]] = []
    before = None
    while True:
        page = await store.threads.messages(THREAD, limit=limit, before=before)
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
    page = await store.threads.messages(THREAD, limit=1, before="m2")
    assert page == Page([message("m3", run_id="r1")], "m3")
    assert await store.threads.messages(THREAD, before="m1") == Page([])


async def test_a_page_of_large_messages_has_fewer(store: Store) -> None:
    await store_turn(store, *(message(f"m{n}", "x" * (READ_BYTES // 3)) for n in range(1, 5)), message("m5"))
    await store_turn(store, message("m6", "x" * 2 * READ_BYTES), key=run("r2"))
    assert await list_pages(store, 100) == [["m6"], ["m2", "m3", "m4", "m5"], ["m1"]]


async def test_a_message_that_is_not_in_the_thread_begins_no_page(store: Store) -> None:
    await store_turn(store, message("m1"))
    await store_turn(store, message("m2"), key=run("r1", "t2"))
    for strange in ("m2", "", "\0"):
        with pytest.raises(BadToken):
            await store.threads.messages(THREAD, before=strange)
    assert await store.threads.messages(ThreadKey("another", "t1"), before="m1") is None


async def test_a_message_is_read_by_its_id(store: Store) -> None:
    await store_turn(store, message("m1", "one", "r1"), message("\0", "two"))
    assert await store.threads.message(THREAD, "m1") == message("m1", "one", "r1")
    assert await store.threads.message(THREAD, "\0") == message("\0", "two")
    for key, name in ((THREAD, "m2"), (ThreadKey("another", "t1"), "m1")):
        assert await store.threads.message(key, name) is None


async def test_a_thread_has_messages_from_its_first_one_on(store: Store) -> None:
    assert not await store.threads.has_messages(THREAD)
    await claim_run(store)
    assert not await store.threads.has_messages(THREAD)
    await store.runs.change(RUN, A, 150.0, Change([message("m1")]))
    assert await store.threads.has_messages(THREAD)
    assert not await store.threads.has_messages(ThreadKey("another", "t1"))
    await store.runs.change(RUN, A, 151.0, Change(order=[]))
    assert not await store.threads.has_messages(THREAD)


# --- forks ------------------------------------------------------------------------------------------------------------


async def forkable(store: Store) -> None:
    await claim_run(store)
    change = Change([message(f"m{n}", run_id="r1") for n in range(1, 5)], ["m1", "m3", "m2", "m4"], b'{"s":1}', "Title")
    await store.runs.finish(RUN, A, [], ending(change))


async def test_a_fork_has_the_history_up_to_a_message(store: Store) -> None:
    await forkable(store)
    record = await store.threads.fork(Fork(THREAD, "m2", "f1", 300.0))
    assert record == await store.threads.get(ThreadKey("owner", "f1"))
    assert (record.forked_from, record.title, record.created_at) == (("t1", "m2"), "Title", 300.0)
    assert record.status is ThreadStatus.USER_TURN
    delta = await store.threads.changes(record.key)
    assert delta is not None
    assert list(delta.messages) == [message("m1"), message("m3"), message("m2")]
    assert delta.state == b'{"s":1}'


async def test_a_fork_and_its_origin_go_their_own_ways(store: Store) -> None:
    await forkable(store)
    record = await store.threads.fork(Fork(THREAD, "m4", "f1", 300.0))
    before = await store.threads.changes(THREAD)
    fork = await store.threads.changes(record.key)
    assert fork is not None
    await claim_run(store, run("r1", "f1"))
    await store.runs.change(run("r1", "f1"), A, 400.0, Change([message("m1", "changed"), message("m5")]))
    assert await store.threads.changes(THREAD) == before
    news = await store.threads.changes(record.key, fork.next)
    assert news is not None
    assert (list(news.messages), news.order) == ([message("m1", "changed"), message("m5")], None)
    assert await store.threads.delete(THREAD)
    assert await store.threads.get(record.key) is not None


async def test_a_fork_that_is_asked_for_again_is_the_same(store: Store) -> None:
    await forkable(store)
    record = await store.threads.fork(Fork(THREAD, "m2", "f1", 300.0))
    assert await store.threads.fork(Fork(THREAD, "m2", "f1", 301.0)) == record
    with pytest.raises(CannotFork):
        await store.threads.fork(Fork(THREAD, "m1", "f1", 300.0))
    with pytest.raises(CannotFork):
        await store.threads.fork(Fork(THREAD, "m2", "t1", 300.0))


@pytest.mark.parametrize(("thread", "message_id"), [("t1", "unknown"), ("unknown", "m1")])
async def test_an_unknown_thread_or_message_cannot_be_forked(store: Store, thread: str, message_id: str) -> None:
    await forkable(store)
    with pytest.raises(CannotFork) as refused:
        await store.threads.fork(Fork(ThreadKey("owner", thread), message_id, "f1", 300.0))
    assert not refused.value.active


async def test_a_message_of_an_active_run_cannot_be_forked(store: Store) -> None:
    await forkable(store)
    key = RunKey("owner", "t1", "r2")
    await claim_run(store, key)
    await store.runs.change(key, A, 250.0, Change([message("m5", run_id="r2")]))
    with pytest.raises(CannotFork) as refused:
        await store.threads.fork(Fork(THREAD, "m5", "f1", 300.0))
    assert refused.value.active
    assert await store.threads.get(ThreadKey("owner", "f1")) is None
    assert (await store.threads.fork(Fork(THREAD, "m4", "f1", 300.0))).forked_from == ("t1", "m4")
    await store.runs.finish(key, A, [], ending())
    assert (await store.threads.fork(Fork(THREAD, "m5", "f2", 300.0))).forked_from == ("t1", "m5")
