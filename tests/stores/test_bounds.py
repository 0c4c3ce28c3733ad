"""Limits of the memory store for ended runs. The newest runs are kept longest."""

from agui_container.ports.records import ITEM_BYTES, Change, ThreadKey
from agui_container.stores.memory import MemoryStore
from tests.stores.doubles import A, claim_run, ending, message, run, store_turn, thread_of


async def test_a_run_that_goes_on_is_never_forgotten() -> None:
    store = MemoryStore(max_threads=1)
    await claim_run(store, run("r", "t0"))
    for n in range(1, 4):
        key = run("r", f"t{n}")
        await claim_run(store, key)
        await store.finish(key, A, [], ending())
    assert await store.run(run("r", "t0")) is not None
    await store.finish(run("r", "t0"), A, [], ending())


async def test_large_threads_make_room_sooner() -> None:
    store = MemoryStore(max_bytes=2 * (3 * ITEM_BYTES + 1_000))
    for n in range(3):
        await store_turn(store, message("m", "x" * 900), key=run("r", f"t{n}"))
    assert [bool(await thread_of(store, ThreadKey("owner", f"t{n}"))) for n in range(3)] == [False, True, True]
    await claim_run(store, run("again", "t1"), change=Change([message("m", "")], state=b"x" * 10))
    await store_turn(store, message("m", "x" * 300), key=run("r", "t3"))
    assert await thread_of(store, ThreadKey("owner", "t2")) is not None
