"""Common values for the tests of stores: keys, claims, envelopes, messages."""

from ag_ui.core import EventType

from agui_container.ports.records import (
    Change,
    Claim,
    Claimed,
    Ending,
    RunKey,
    RunRecord,
    RunStatus,
    StoredMessage,
    ThreadKey,
    ThreadStatus,
)
from agui_container.ports.store import Store
from agui_container.protocol.wire.envelope import Envelope

THREAD = ThreadKey("owner", "t1")
RUN = RunKey(*THREAD, "r1")
A, B, C = "replica-a", "replica-b", "replica-c"


def run(run_id: str = "r1", thread_id: str = "t1", owner: str = "owner") -> RunKey:
    return RunKey(owner, thread_id, run_id)


def claim(key: RunKey = RUN, replica: str = A, now: float = 100.0, until: float = 115.0) -> Claim:
    return Claim(key, replica, now, until)


async def claim_run(store: Store, key: RunKey = RUN, replica: str = A, now: float = 100.0) -> RunRecord:
    """A run that has begun."""
    answer = await store.runs.claim(claim(key, replica, now, now + 15))
    assert isinstance(answer, Claimed)
    return answer.run


def envelopes(first: int, last: int, run_id: str = "r1", size: int = 0) -> list[Envelope]:
    """Events ``first`` to ``last``, each as its own bytes."""
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
    """A run that began and ended, and left these messages."""
    await claim_run(store, key, now=now)
    await store.runs.finish(key, A, [], ending(Change(messages), now + 1))
