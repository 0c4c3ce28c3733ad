"""Common values for the tests of stores: keys, claims, envelopes, messages."""

from collections.abc import Sequence

from ag_ui.core import EventType

from agui_container.ports.records import (
    Begun,
    Busy,
    Change,
    Claim,
    Ending,
    Exists,
    RunKey,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import Store
from agui_container.protocol.envelope import Envelope

THREAD = ThreadKey("owner", "t1")
RUN = RunKey(*THREAD, "r1")
A, B = "replica-a", "replica-b"


def run(run_id: str = "r1", thread_id: str = "t1", owner: str = "owner") -> RunKey:
    return RunKey(owner, thread_id, run_id)


def claim(key: RunKey = RUN, replica: str = A, now: float = 100.0, lease: float = 15.0) -> Claim:
    return Claim(key, replica, lease, now)


async def begin(store: Store, asked: Claim, change: Change | None = None) -> Begun | Exists | Busy:
    """Begin a run whose input changes its thread in this way."""

    async def merge(_: ThreadDelta) -> Change:
        return change or Change()

    return await store.begin(asked, merge)


async def claim_run(  # noqa: PLR0913 - each has a default
    store: Store,
    key: RunKey = RUN,
    replica: str = A,
    now: float = 100.0,
    *,
    lease: float = 15.0,
    change: Change | None = None,
) -> RunRecord:
    answer = await begin(store, claim(key, replica, now, lease), change)
    assert isinstance(answer, Begun)
    return answer.run


async def get_run(store: Store, key: RunKey = RUN) -> RunRecord:
    """Return a run that the store must have."""
    record = await store.run(key)
    assert record is not None
    return record


async def get_thread(store: Store, key: ThreadKey = THREAD) -> ThreadRecord:
    return (await get_delta(store, key, messages=False)).thread


async def get_delta(
    store: Store, key: ThreadKey = THREAD, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
) -> ThreadDelta:
    """Return a thread that the store must have, or what is new in it."""
    delta = await store.thread(key, since, messages=messages, notes=notes)
    assert delta is not None
    return delta


async def thread_of(store: Store, key: ThreadKey = THREAD) -> ThreadRecord | None:
    delta = await store.thread(key, messages=False)
    return delta.thread if delta else None


def envelopes(first: int, last: int, run_id: str = "r1", size: int = 0) -> list[Envelope]:
    return [
        Envelope(run_id, seq, EventType.CUSTOM, b'{"n":%d%b}' % (seq, b" " * size)) for seq in range(first, last + 1)
    ]


def message(id: str, text: str = "", run_id: str | None = None) -> StoredMessage:  # noqa: A002 - as in the record
    return StoredMessage(id, f'{{"id":"{id}","content":"{text}"}}'.encode(), run_id)


def ending(
    change: Change | None = None,
    ended_at: float = 200.0,
    status: RunStatus = RunStatus.FINISHED,
    turn: ThreadStatus = ThreadStatus.USER_TURN,
) -> Ending:
    return Ending(status, ended_at, turn, b'[{"inputTokens":1}]', None, change or Change())


async def store_turn(store: Store, *messages: StoredMessage, key: RunKey = RUN, now: float = 100.0) -> None:
    await claim_run(store, key, now=now)
    await store.finish(key, A, [], ending(Change(messages), now + 1))


async def change_thread(store: Store, run_id: str, change: Change, now: float = 200.0) -> None:
    """Change the thread by the input of a run."""
    key = run(run_id)
    await claim_run(store, key, now=now, change=change)
    await store.finish(key, A, [], ending(ended_at=now + 1))
