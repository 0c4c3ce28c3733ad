"""Deltas of threads in every store: a client that applies them has the thread, whenever it asks."""

import random
from copy import deepcopy
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agui_container.ports.records import Change, StoredGoal, StoredMessage, ThreadDelta
from agui_container.ports.store import Store
from agui_container.stores.memory import MemoryStore
from agui_container.stores.memory.data import Bounds, MemoryData
from tests.stores.doubles import RUN, THREAD, A, claim_run, ending, message, run, store_turn


@dataclass
class StoreFollower:
    """A client that knows a thread by its deltas."""

    token: str | None = None
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    state: bytes | None = None
    goals: list[StoredGoal] = field(default_factory=list)

    async def look(self, store: Store) -> ThreadDelta:
        """Read the next delta and apply it."""
        delta = await store.threads.changes(THREAD, self.token)
        assert delta is not None
        self.messages |= {each.id: each for each in delta.messages}
        if delta.order is not None:
            self.messages = {name: self.messages[name] for name in delta.order}
        self.state = self.state if delta.state is None else delta.state
        self.goals = self.goals if delta.goals is None else list(delta.goals)
        self.token = delta.next
        return delta


async def test_a_delta_has_only_what_is_new(store: Store) -> None:
    follower = StoreFollower()
    await claim_run(store)
    await store.runs.change(RUN, A, 1.0, Change([message("m1"), message("m2")], state=b"{}"))
    await follower.look(store)
    await store.runs.change(RUN, A, 2.0, Change([message("m1"), message("m2", "more"), message("m3")]))
    delta = await follower.look(store)
    assert list(delta.messages) == [message("m2", "more"), message("m3")]
    assert (delta.order, delta.state, delta.goals) == (None, None, None)
    delta = await follower.look(store)
    assert list(delta.messages) == []


async def test_without_a_token_or_with_a_strange_one_a_delta_is_everything(store: Store) -> None:
    await store_turn(store, message("m1"), message("m2"))
    whole = await store.threads.changes(THREAD)
    assert whole is not None
    assert (list(whole.messages), list(whole.order or ())) == ([message("m1"), message("m2")], ["m1", "m2"])
    for strange in ("", "x", "0.0", "1.", ".1", "-1.-1", "999.1", "1.\u0661", f"1.{2**63}", "1." + "9" * 400):
        assert await store.threads.changes(THREAD, strange) == whole


async def test_a_thread_can_be_had_without_its_messages(store: Store) -> None:
    await store_turn(store, message("m1"), message("m2"))
    whole = await store.threads.changes(THREAD)
    assert whole is not None
    assert await store.threads.changes(THREAD, messages=False) == replace(whole, messages=[], order=None)


async def test_a_token_of_a_thread_that_was_deleted_says_nothing_of_its_successor(store: Store) -> None:
    follower = StoreFollower()
    await store_turn(store, message("old"), message("m1"))
    await follower.look(store)
    await store.threads.delete(THREAD)
    await store_turn(store, message("m1", "new"))
    await follower.look(store)
    assert list(follower.messages.values()) == [message("m1", "new")]


async def test_a_token_of_an_earlier_process_says_nothing_of_this_one() -> None:
    follower = StoreFollower()
    for text in ("old", "new"):
        store = MemoryStore()
        await store_turn(store, message("m1", text))
        await follower.look(store)
    assert list(follower.messages.values()) == [message("m1", "new")]


def test_processes_of_one_snapshot_give_numbers_of_their_own() -> None:
    snapshot = MemoryData(Bounds())
    one, other = (deepcopy(snapshot).next_number() for _ in range(2))
    assert one != other
    assert {one.bit_length(), other.bit_length()} <= {60}


async def test_a_message_in_between_or_gone_comes_as_an_order(store: Store) -> None:
    follower = StoreFollower()
    await claim_run(store)
    await store.runs.change(RUN, A, 1.0, Change([message("m1"), message("m2")]))
    await follower.look(store)
    await store.runs.change(RUN, A, 2.0, Change([message("m3")], order=["m1", "m3", "m2", "never", "m1"]))
    delta = await follower.look(store)
    assert (list(delta.messages), list(delta.order or ())) == ([message("m3")], ["m1", "m3", "m2"])
    await store.runs.change(RUN, A, 3.0, Change(order=["m3", "m2"]))
    assert list((await follower.look(store)).order or ()) == ["m3", "m2"]
    assert list(follower.messages) == ["m3", "m2"]
    await store.runs.change(RUN, A, 4.0, Change([message("m9")], order=["m3", "m2", "m9"]))
    assert (await follower.look(store)).order is None
    assert list(follower.messages) == ["m3", "m2", "m9"]


async def test_of_a_message_twice_in_one_change_the_last_counts(store: Store) -> None:
    await store_turn(store, message("m1", "first"), message("m2"), message("m1", "last"))
    delta = await store.threads.changes(THREAD)
    assert delta is not None
    assert list(delta.messages) == [message("m1", "last"), message("m2")]


# --- random orders ----------------------------------------------------------------------------------------------------

IDS = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
PUT = st.lists(st.tuples(IDS, st.sampled_from(["", "a", "b"])), max_size=3).map(
    lambda those: Change([message(name, text) for name, text in those])
)
ORDER = st.lists(IDS, unique=True).map(lambda ids: Change(order=ids))
STATE = st.sampled_from([b"{}", b"[]"]).map(lambda state: Change(state=state))
STEPS = st.lists(st.one_of(PUT, PUT, ORDER, STATE, st.just("look"), st.just("next run")), max_size=25)


async def play(store: Store, steps: list[Change | str]) -> None:
    """Followers that look at different moments end up with the same thread."""
    often, seldom, number = StoreFollower(), StoreFollower(), 1
    await claim_run(store, run("r1"))
    for step in steps:
        if step == "look":
            await seldom.look(store)
        elif isinstance(step, Change):
            await store.runs.change(run(f"r{number}"), A, 1.0, step)
        else:
            await store.runs.finish(run(f"r{number}"), A, [], ending(Change([message("last", str(number))])))
            number += 1
            await claim_run(store, run(f"r{number}"))
        await often.look(store)
    new = StoreFollower()
    for follower in (new, often, seldom):
        await follower.look(store)
        assert list(follower.messages.items()) == list(new.messages.items())
        assert follower.state == new.state


@given(STEPS)
async def test_folding_deltas_gives_the_thread(steps: list[Change | str]) -> None:
    await play(MemoryStore(), steps)


async def test_folding_deltas_of_a_database_gives_the_thread_too(store: Store) -> None:
    """Property of one store, over one long life of each."""
    dice = random.Random(5)  # noqa: S311 - the same dice in every run
    names = [f"m{n}" for n in range(1, 8)]
    steps: list[Change | str] = []
    for _ in range(150):
        put = Change([message(dice.choice(names), str(dice.randrange(3))) for _ in range(dice.randrange(3))])
        order = Change(order=dice.sample(names, dice.randrange(8)))
        state = Change(state=dice.choice([b"{}", b"[]"]))
        some: list[Change | str] = [put, order, state, "look", "next run"]
        steps += dice.choices(some, [6, 2, 1, 3, 2])
    await play(store, steps)
