"""Commands of threads: deltas, private data that stays inside, and a store that does not answer."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from ag_ui.core import Interrupt
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from agui_container.engine.admission.quota import Quota
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.policy import CapacityLimits
from agui_container.engine.threads import threads as threads_module
from agui_container.engine.threads.threads import RunControl, ThreadCommands
from agui_container.engine.threads.turns import TURN_PAGE
from agui_container.engine.threads.views import shown_thread_view
from agui_container.ports.records import (
    Change,
    Feedback,
    GoalStatus,
    RunKey,
    StoredGoal,
    ThreadDelta,
    ThreadKey,
    Triage,
)
from agui_container.ports.store import Store, StoreUnavailable
from agui_container.protocol.commands import (
    MAX_NOTES,
    Sentiment,
    ThreadCommand,
    ThreadsDelete,
    ThreadsDelta,
    ThreadsFeedback,
    ThreadsFork,
    ThreadsGet,
    ThreadsList,
    ThreadsTranscript,
)
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import parse_command
from agui_container.runtime.offload import LARGE_BYTES
from agui_container.stores.memory import MemoryStore
from tests.buses.memory_bus import MemoryBus
from tests.counted_bytes import record_used_bytes
from tests.engine.conversations import ANSWER, QUESTION, change, store_conversation
from tests.engine.doubles import START, WAIT, FakeClock, Json, answer_of, caller, make_quota, raises_code
from tests.requirements import requirement
from tests.stores.doubles import A, claim_run

RUN = RunKey("everybody", "t1", "r1")


def threads_of(store: Store, runs: RunControl | None = None, quota: Quota | None = None) -> ThreadCommands:
    cluster = Cluster(store, MemoryBus(), FakeClock(), durable=False, new_id=lambda: "replica")
    return ThreadCommands(cluster, quota or make_quota(), lambda: "fork", runs or NoRuns())


class NoRuns:
    """A stand-in for the service that knows no runs."""

    def __init__(self) -> None:
        self.cancels = 0

    async def cancel(self, *_: object) -> None:
        self.cancels += 1
        raise AppError(ErrorCode.RUN_NOT_FOUND, "There is no such run.")

    async def waiting(self, *_: object) -> list[Interrupt]:
        return []

    def forget_thread(self, _: ThreadKey) -> None:
        """Do nothing, because there are no runs."""


# --- deltas -----------------------------------------------------------------------------------------------------------


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
        kept = {name: self.rest[name] for name in ("state", "goals") if name in self.rest}
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
STEPS = st.lists(st.one_of(SAID, SAID, ORDER, STATE, st.sampled_from(["look", "rename", "goal"])), max_size=20)


async def do(store: Store, threads: ThreadCommands, step: Change | str, at: int) -> None:
    if isinstance(step, Change):
        await store.runs.change(RUN, A, START + at, step)
    elif step == "rename":
        await answer_of(threads, parse_command({"type": "threads.rename", "threadId": "t1", "title": f"T{at}"}))  # type: ignore[arg-type]
    elif step == "goal":
        await store.goals.declare(RUN, [StoredGoal("r1", at, "price", b"{}", START + at)])


@requirement("thread.delta")
@given(STEPS)
async def test_the_deltas_of_a_thread_merged_equal_the_thread(steps: list[Change | str]) -> None:
    store = MemoryStore()
    threads, often, seldom = threads_of(store), ThreadFollower(), ThreadFollower()
    await claim_run(store, RUN)
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


@pytest.mark.parametrize("since", ["", "x", "0.0", "999.1", "1." + "9" * 400])
async def test_a_strange_token_gives_everything(since: str) -> None:
    store = MemoryStore()
    await store_conversation(store, QUESTION)
    delta: Json = await answer_of(threads_of(store), ThreadsDelta(thread_id="t1", since=since))
    assert (delta["messages"], delta["order"]) == ([QUESTION], ["m1"])


# --- records ----------------------------------------------------------------------------------------------------------


@requirement("thread.get")
async def test_goals_are_told_with_what_became_of_them() -> None:
    store = MemoryStore()
    await claim_run(store, RUN)
    goals = [StoredGoal("r1", at, kind, b'{"type":"object"}', START) for at, kind in enumerate(["price", "date"])]
    await store.goals.declare(RUN, goals)
    await store.goals.conclude(RUN, 0, GoalStatus.ACHIEVED, START + 1, result=b'{"amount":2.5}')
    whole: Json = await answer_of(threads_of(store), ThreadsGet(thread_id="t1"))
    assert whole["goals"] == [
        {
            "runId": "r1",
            "type": "price",
            "status": "achieved",
            "createdAt": START,
            "data": {"amount": 2.5},
            "concludedAt": START + 1,
        },
        {"runId": "r1", "type": "date", "status": "pending", "createdAt": START},
    ]


@requirement("thread.get")
async def test_messages_that_are_not_wanted_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store, read = MemoryStore(), list[int]()
    await store_conversation(store)
    changes = store.threads.changes

    async def counted(key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta | None:
        delta = await changes(key, since, messages=messages)
        assert delta is not None
        read.append(len(delta.messages))
        return delta

    monkeypatch.setattr(store.threads, "changes", counted)
    brief: Json = await answer_of(threads_of(store), ThreadsGet(thread_id="t1", messages=False))
    assert (read, brief.keys() & {"messages", "runs", "order"}) == ([0], set())


async def store_large(store: Store) -> ThreadKey:
    """Store a thread whose goals and feedback are large, and whose messages are not."""
    key = ThreadKey("everybody", "t1")
    await store_conversation(store)
    await store.goals.declare(RUN, [StoredGoal("r1", 0, "g", b'"' + b"x" * LARGE_BYTES + b'"', START)])
    await store.feedbacks.put(key, Feedback("m4", "negative", (), "x" * MAX_NOTES, START, START))
    return key


SHOWN: list[ThreadCommand] = [
    ThreadsGet(thread_id="t1"),
    ThreadsGet(thread_id="t1", messages=False),
    ThreadsGet(thread_id="t1", limit=1),
    ThreadsDelta(thread_id="t1"),
    ThreadsTranscript(thread_id="t1"),
]


@requirement("caller.loop")
@pytest.mark.parametrize("command", SHOWN)
async def test_a_thread_for_which_there_is_no_room_is_refused_before_it_is_built(
    command: ThreadCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    await store_large(store)
    monkeypatch.setattr(threads_module, "offload_if_large", None)

    full = make_quota(CapacityLimits(bytes_in_flight=LARGE_BYTES))
    with raises_code(ErrorCode.RATE_LIMIT_EXCEEDED):
        await answer_of(threads_of(store, quota=full), command)


@requirement("caller.loop")
async def test_goals_and_feedback_count_as_a_part_of_their_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    store, threads, used = MemoryStore(), list[int](), record_used_bytes(monkeypatch)
    await store_large(store)

    def recorded(delta: ThreadDelta, feedback: Sequence[Feedback], *, with_messages: bool) -> dict[str, object]:
        threads.append(threading.get_ident())
        return shown_thread_view(delta, feedback, with_messages=with_messages)

    monkeypatch.setattr(threads_module, "shown_thread_view", recorded)
    await answer_of(threads_of(store), ThreadsGet(thread_id="t1", messages=False))
    assert used[1] > LARGE_BYTES
    assert used[2] >= used[1] + 4 * MAX_NOTES
    assert used[-1] == 0
    assert threads != [threading.get_ident()]


@requirement("caller.loop")
async def test_a_question_about_one_message_reads_no_whole_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    await store_conversation(store)
    threads = threads_of(store)
    monkeypatch.setattr(store.threads, "changes", None)
    rating = ThreadsFeedback(thread_id="t1", message_id="m4", sentiment=Sentiment.POSITIVE)
    assert (await answer_of(threads, rating))["sentiment"] == "positive"
    fork = await answer_of(threads, ThreadsFork(thread_id="t1", message_id="m2"))
    assert fork["status"] == "client_tool_turn"
    assert await threads.has_messages(caller(), "t1")
    assert not await threads.has_messages(caller(), "t2")
    last = await threads.last_message(caller(), "t1")
    assert last is not None
    assert (last.id, await threads.last_message(caller(), "t2")) == ("m4", None)


@requirement("caller.loop")
async def test_the_last_messages_of_a_thread_are_read_in_pages_up_to_the_first_that_matters() -> None:
    store = MemoryStore()
    talk = [{"id": f"u{n}", "role": "user", "content": str(n)} for n in range(4 * TURN_PAGE)]
    await store_conversation(store, *talk)
    read = await threads_of(store).messages_since(caller(), "t1", lambda it: it.id == talk[-TURN_PAGE - 1]["id"])
    assert [message.id for message in read] == [message["id"] for message in talk[-2 * TURN_PAGE :]]
    assert await threads_of(store).messages_since(caller(), "unknown", lambda _: False) == []


@requirement("feedback.hidden")
async def test_nothing_of_a_triage_reaches_a_user() -> None:
    store = MemoryStore()
    await store_conversation(store)
    key = ThreadKey("everybody", "t1")
    await store.feedbacks.put(key, Feedback("m4", "negative", ("slow",), "my words", START, START))
    secret = Triage("secret-label", "secret-note", "secret-operator", 1_234_567.0)
    assert {field.name for field in fields(Triage)} == {"label", "note", "resolved_by", "resolved_at"}
    await store.feedbacks.triage(key, "m4", secret)
    threads = threads_of(store)
    again = ThreadsFeedback(thread_id="t1", message_id="m4", sentiment=Sentiment.NEGATIVE, notes="my words")
    asked: list[ThreadCommand] = [ThreadsGet(thread_id="t1"), ThreadsDelta(thread_id="t1"), ThreadsList(), again]
    told = [str(await answer_of(threads, each)) for each in asked]
    assert "my words" in told[0]
    assert not [text for text in told if "secret" in text or "1234567" in text]
    assert (await store.feedbacks.reviews()).items[0].triage == secret


async def test_a_thread_that_goes_while_it_is_rated_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    await store_conversation(store, ANSWER)

    async def gone(*_: object) -> None:
        return None

    monkeypatch.setattr(store.feedbacks, "put", gone)
    with raises_code(ErrorCode.THREAD_NOT_FOUND):
        await answer_of(
            threads_of(store), ThreadsFeedback(thread_id="t1", message_id="m4", sentiment=Sentiment.POSITIVE)
        )


@requirement("thread.delete-active")
async def test_a_thread_whose_run_is_cancelled_and_nobody_hears_it_is_deleted_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agui_container.engine.threads.threads.CANCEL_SECONDS", 0.01)
    monkeypatch.setattr("agui_container.engine.threads.threads.POLL_SECONDS", 0)
    store, runs = MemoryStore(), NoRuns()
    await claim_run(store, RUN)
    async with asyncio.timeout(WAIT):
        told = await answer_of(threads_of(store, runs), ThreadsDelete(thread_id="t1"))
    assert (told, runs.cancels) == ({"threadId": "t1", "deleted": True}, 1)
    assert await store.threads.get(ThreadKey("everybody", "t1")) is None


@requirement("thread.unavailable")
async def test_a_store_that_does_not_answer_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: object, **__: object) -> None:
        raise StoreUnavailable("secret host")

    store = MemoryStore()
    monkeypatch.setattr(store.threads, "list", gone)
    monkeypatch.setattr(store.threads, "changes", gone)
    for asked in (ThreadsList(), ThreadsGet(thread_id="t1")):
        with pytest.raises(AppError) as refused:
            await answer_of(threads_of(store), asked)
        assert (refused.value.code, refused.value.spec.is_retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
        assert "secret" not in refused.value.message


async def test_messages_are_given_back_as_they_were() -> None:
    odd: Json = {"id": "m1", "role": "user", "content": "\u2028 é 😀", "metadata": {"x": [1.5, None]}, "own": {"a": 1}}
    store = MemoryStore()
    await store_conversation(store, odd)
    whole: Json = await answer_of(threads_of(store), ThreadsGet(thread_id="t1"))
    assert whole["messages"] == [odd]
