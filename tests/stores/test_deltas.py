"""Deltas of threads in every store: a client that applies them has the thread, whenever it asks."""

from dataclasses import dataclass, field

from agui_container.ports.records import Change, StoredMessage, ThreadDelta
from agui_container.ports.store import Store
from tests.stores.doubles import THREAD, change_thread, get_delta, message, store_turn


@dataclass
class StoreFollower:
    token: str | None = None
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    state: bytes | None = None

    async def look(self, store: Store) -> ThreadDelta:
        delta = await get_delta(store, THREAD, self.token)
        self.messages |= {each.id: each for each in delta.messages}
        if delta.order is not None:
            self.messages = {name: self.messages[name] for name in delta.order}
        self.state = self.state if delta.state is None else delta.state
        self.token = delta.next
        return delta


async def test_a_delta_has_only_what_is_new(store: Store) -> None:
    follower = StoreFollower()
    await change_thread(store, "r1", Change([message("m1"), message("m2")], state=b"{}"))
    await follower.look(store)
    await change_thread(store, "r2", Change([message("m1"), message("m2", "more"), message("m3")]))
    delta = await follower.look(store)
    assert list(delta.messages) == [message("m2", "more"), message("m3")]
    assert (delta.order, delta.state) == (None, None)
    delta = await follower.look(store)
    assert list(delta.messages) == []


async def test_without_a_token_or_with_a_strange_one_a_delta_is_everything(store: Store) -> None:
    await store_turn(store, message("m1"), message("m2"))
    whole = await get_delta(store)
    assert (list(whole.messages), list(whole.order or ())) == ([message("m1"), message("m2")], ["m1", "m2"])
    for strange in ("", "x", "0.0", "1.", ".1", "-1.-1", "999.1", "1.\u0661", f"1.{2**63}", "1." + "9" * 400):
        assert await store.thread(THREAD, strange) == whole


async def test_a_message_in_between_or_gone_comes_as_an_order(store: Store) -> None:
    follower = StoreFollower()
    await change_thread(store, "r1", Change([message("m1"), message("m2")]))
    await follower.look(store)
    await change_thread(store, "r3", Change([message("m3")], order=["m1", "m3", "m2", "never", "m1"]))
    delta = await follower.look(store)
    assert (list(delta.messages), list(delta.order or ())) == ([message("m3")], ["m1", "m3", "m2"])
    await change_thread(store, "r4", Change(order=["m3", "m2"]))
    assert list((await follower.look(store)).order or ()) == ["m3", "m2"]
    assert list(follower.messages) == ["m3", "m2"]
    await change_thread(store, "r5", Change([message("m9")], order=["m3", "m2", "m9"]))
    assert (await follower.look(store)).order is None
    assert list(follower.messages) == ["m3", "m2", "m9"]
