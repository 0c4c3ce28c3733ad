"""Notes of threads in every store: one row for each kind and id, settled once, deleted with their messages."""

import asyncio

from agui_container.ports.records import Change, ThreadKey, ThreadNote
from agui_container.ports.store import Delete, DurableStore, Store
from tests.stores.conftest import Replica
from tests.stores.doubles import RUN, THREAD, A, claim_run, ending, get_delta, message, run, store_turn

OTHERS = (ThreadKey("another", "t1"), ThreadKey("owner", "t2"))


def note(name: str, data: bytes = b"{}", kind: str = "call", until: float | None = 5e9) -> ThreadNote:
    return ThreadNote(kind, name, data, until)


def settled(name: str, data: bytes) -> ThreadNote:
    return ThreadNote("call", name, data, 9e9, is_settled=True)


async def test_notes_come_by_kind_in_the_order_in_which_they_were_first_stored(store: Store) -> None:
    await store_turn(store)
    await claim_run(store, run("r", "t2"))
    assert await store.put_notes(THREAD, [note("b", b"1"), note("a", b"\0\xc3\xbc"), note("b", b"3", "fact", None)])
    assert await store.put_notes(THREAD, [note("c", b"4"), note("b", b"5")])
    assert await store.put_notes(THREAD, [])
    assert list(await store.notes(THREAD, "call")) == [note("b", b"5"), note("a", b"\0\xc3\xbc"), note("c", b"4")]
    assert list(await store.notes(THREAD, "fact")) == [note("b", b"3", "fact", None)]
    assert list(await store.notes(THREAD)) == []
    for other in OTHERS:
        assert list(await store.notes(other, "call", "fact")) == []


async def test_a_delta_has_the_notes_that_are_asked_for(store: Store) -> None:
    await store_turn(store, message("m1"))
    await store.put_notes(THREAD, [note("a"), note("b", kind="fact")])
    delta = await get_delta(store, THREAD, notes=("fact", "call"))
    assert list(delta.notes) == [note("a"), note("b", kind="fact")]
    assert list((await get_delta(store, THREAD, delta.next)).notes) == []


async def test_a_thread_that_does_not_exist_takes_no_notes(store: Store) -> None:
    assert not await store.put_notes(THREAD, [note("a")])
    assert not await store.settle_note(THREAD, settled("a", b"1"))
    assert list(await store.notes(THREAD, "call")) == []


async def test_an_answer_is_taken_once(store: Store) -> None:
    await store_turn(store)
    await store.put_notes(THREAD, [note("a", b"asked")])
    assert await store.settle_note(THREAD, settled("a", b"first"))
    assert not await store.settle_note(THREAD, settled("a", b"second"))
    assert not await store.settle_note(THREAD, settled("unknown", b"third"))
    assert list(await store.notes(THREAD, "call")) == [settled("a", b"first")]
    await store.put_notes(THREAD, [note("a", b"asked again")])
    assert await store.settle_note(THREAD, settled("a", b"third"))


async def test_of_answers_at_once_one_is_taken(replica: Replica) -> None:
    stores = [await replica() for _ in range(3)]
    await store_turn(stores[0])
    await stores[0].put_notes(THREAD, [note("a", b"asked")])
    answers = [b"%d" % n for n in range(9)]
    taken = await asyncio.gather(
        *(stores[n % 3].settle_note(THREAD, settled("a", answer)) for n, answer in enumerate(answers))
    )
    assert sum(taken) == 1
    assert list(await stores[0].notes(THREAD, "call")) == [settled("a", answers[taken.index(True)])]


async def test_expired_notes_are_removed_in_time(durable: DurableStore) -> None:
    await store_turn(durable)
    await durable.put_notes(THREAD, [note("a", until=50.0), note("b", until=60.0), note("c", until=None)])
    for _ in range(2):
        await durable.forget(0.0, 50.0)
    assert [each.id for each in await durable.notes(THREAD, "call")] == ["b", "c"]


async def test_a_run_stores_notes_with_its_changes_and_its_end(store: Store) -> None:
    await claim_run(store, change=Change(notes=[note("a")]))
    assert list(await store.notes(THREAD, "call")) == [note("a")]
    await store.finish(RUN, A, [], ending(Change(notes=[note("b"), settled("a", b"1")])))
    assert list(await store.notes(THREAD, "call")) == [settled("a", b"1"), note("b")]


async def test_notes_are_deleted_with_their_message_and_all_with_their_thread(store: Store) -> None:
    await store_turn(store, message("m1"), message("m2"))
    notes = [ThreadNote("word", name, b"1", message_id=name) for name in ("m1", "m2")]
    await store.put_notes(THREAD, [*notes, note("a")])
    await claim_run(store, run("r2"), change=Change(order=["m2"]))
    assert list(await store.notes(THREAD, "word", "call")) == [notes[1], note("a")]
    assert await store.edit(THREAD, Delete())
    assert list(await store.notes(THREAD, "word", "call")) == []
    await store_turn(store, key=run("again"), now=300.0)
    assert list(await store.notes(THREAD, "word", "call")) == []
