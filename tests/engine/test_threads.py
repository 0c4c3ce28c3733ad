"""Commands of threads: deltas, private data that stays inside, and a store that does not answer."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from agui_container.engine.stored_messages import TURN_PAGE
from agui_container.engine.threads import ThreadCommands
from agui_container.ports.records import (
    Change,
    RunKey,
)
from agui_container.ports.store import Store
from agui_container.protocol.parser import parse_command
from agui_container.run.cluster import Cluster
from agui_container.stores.memory import MemoryStore
from agui_core.commands import (
    ThreadsDelta,
    ThreadsGet,
)
from tests.engine.conversations import change, store_conversation
from tests.engine.doubles import START, FakeClock, Json, answer_of, caller, forever, make_service
from tests.replicas.buses.memory_bus import MemoryBus
from tests.stores.doubles import change_thread, store_turn

RUN = RunKey("everybody", "t1", "r1")


def threads_of(store: Store) -> ThreadCommands:
    cluster = Cluster(store, MemoryBus(), FakeClock(), new_id=lambda: "replica")
    return make_service(forever, cluster=cluster).threads


@dataclass
class ThreadFollower:
    """A client that follows a thread by its deltas, as the guide describes."""

    token: str | None = None
    messages: dict[str, Json] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    rest: Json = field(default_factory=dict)

    async def look(self, threads: ThreadCommands) -> None:
        delta: Json = await answer_of(threads, ThreadsDelta(thread_id="t1", since=self.token))
        new = {message["id"]: message for message in delta.pop("messages")}
        self.messages |= new
        self.runs = {name: run for name, run in self.runs.items() if name not in new} | delta.pop("runs")
        if "order" in delta:
            self.messages = {name: self.messages[name] for name in delta.pop("order")}
        self.token = delta.pop("continuationToken")
        kept = {name: self.rest[name] for name in ("state",) if name in self.rest}
        self.rest = kept | delta


IDS = st.sampled_from(["m1", "m2", "m3", "m4"])
SAID = st.builds(
    lambda those, run_id: change(
        *({"id": name, "role": "assistant", "content": text} for name, text in those), run_id=run_id
    ),
    st.lists(st.tuples(IDS, st.sampled_from(["", "a", "b"])), max_size=3),
    st.sampled_from(["r1", None]),
)
ORDER = st.lists(IDS, unique=True).map(lambda ids: Change(order=ids))
STATE = st.sampled_from([1, 2]).map(lambda n: change(state={"n": n}))
STEPS = st.lists(st.one_of(SAID, SAID, ORDER, STATE, st.sampled_from(["look", "rename"])), max_size=20)


async def do(store: Store, threads: ThreadCommands, step: Change | str, at: int) -> None:
    if isinstance(step, Change):
        await change_thread(store, f"r{at + 2}", step, START + at)
    elif step == "rename":
        await answer_of(threads, parse_command({"type": "threads.rename", "threadId": "t1", "title": f"T{at}"}))  # type: ignore[arg-type]


@given(STEPS)
async def test_the_deltas_of_a_thread_merged_equal_the_thread(steps: list[Change | str]) -> None:
    store = MemoryStore()
    threads, often, seldom = threads_of(store), ThreadFollower(), ThreadFollower()
    await store_turn(store, key=RUN)
    for at, step in enumerate(steps):
        await do(store, threads, step, at)
        if step == "look":
            await seldom.look(threads)
        await often.look(threads)
    await often.look(threads)
    await seldom.look(threads)
    whole: Json = await answer_of(threads, ThreadsGet(thread_id="t1"))
    for follower in (often, seldom):
        assert list(follower.messages.values()) == whole["messages"]
        assert {name: run for name, run in follower.runs.items() if name in follower.messages} == whole["runs"]
        assert follower.token == whole["continuationToken"]
        assert follower.rest == {
            name: whole[name]
            for name in whole.keys()
            - {"messages", "runs", "feedback", "waiting", "answers", "notices", "continuationToken"}
        }


async def test_the_last_messages_of_a_thread_are_read_in_pages_up_to_the_first_that_matters() -> None:
    store = MemoryStore()
    talk = [{"id": f"u{n}", "role": "user", "content": str(n)} for n in range(4 * TURN_PAGE)]
    await store_conversation(store, *talk)
    read = await threads_of(store).messages_since(caller(), "t1", lambda it: it.id == talk[-TURN_PAGE - 1]["id"])
    assert [message.id for message in read] == [message["id"] for message in talk[-2 * TURN_PAGE :]]
    assert await threads_of(store).messages_since(caller(), "unknown", lambda _: False) == []
