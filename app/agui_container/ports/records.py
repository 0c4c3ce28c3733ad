"""Records of a store: runs, interrupts, threads, messages, goals and feedback. Frozen data.

Rule: JSON is ``bytes`` and is returned byte for byte. Times are Unix seconds. A store does not interpret events or
messages. It orders and counts them and reports changes.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from pydantic_core import from_json, to_json

T = TypeVar("T")

ITEM_BYTES = 500
"""Estimated bytes of a message, a goal or a feedback in memory in addition to its content."""

CHARACTER_BYTES = 4
"""Bytes of a character of text in memory, at most."""


class ThreadKey(NamedTuple):
    """Key of a thread: its owner and the client's id of the thread."""

    owner: str
    thread_id: str


class RunKey(NamedTuple):
    """Key of a run: its owner, and the client's ids of the thread and the run."""

    owner: str
    thread_id: str
    run_id: str

    @property
    def thread(self) -> ThreadKey:
        """Key of the run's thread."""
        return ThreadKey(self.owner, self.thread_id)


class Page(Struct, Generic[T], frozen=True):
    """A page of a list. ``next`` is the token of the next page, or None on the last page."""

    items: Sequence[T]
    next: str | None = None


# --- runs -------------------------------------------------------------------------------------------------------------


class RunStatus(StrEnum):
    """Status of a stored run. A queued run is not stored."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    ERROR = "error"


class RunRecord(Struct, frozen=True):
    """A stored run.

    Attributes:
        key: key of the run.
        replica: replica that executes the run, or executed it last.
        lease_until: end of the replica's lease unless the replica renews it.
        status: status of the run.
        started_at: time of the claim.
        last_seq: number of stored envelopes, which is the ``seq`` of the last one.
        ended_at: time of the end; None while the run is active.
        usage: token usage of its model calls so far as JSON; None if unknown.
        error: the error as JSON; None unless the run failed.
        has_events: True while its envelopes can be read. ``RunStore.forget`` removes them.
        readers: number of readers, according to the last report of its replica.
        fingerprint: fingerprint of the messages of its input; None if it was stored without one.
    """

    key: RunKey
    replica: str
    lease_until: float
    status: RunStatus
    started_at: float
    last_seq: int = 0
    ended_at: float | None = None
    usage: bytes | None = None
    error: bytes | None = None
    has_events: bool = True
    readers: int = 0
    fingerprint: bytes | None = None

    @property
    def is_active(self) -> bool:
        """True if the run has not ended."""
        return self.status is RunStatus.RUNNING


class Claim(Struct, frozen=True):
    """Request of a replica to execute a run.

    Attributes:
        key: key of the run.
        replica: name of the replica.
        now: time of the claim.
        until: end of the lease.
        continues: id of the run that this run continues. A newer run of the thread prevents the claim.
        fingerprint: fingerprint of the messages of its input.
    """

    key: RunKey
    replica: str
    now: float
    until: float
    continues: str | None = None
    fingerprint: bytes | None = None


def claimed_run(claim: Claim) -> RunRecord:
    """Return the record of a run that has just been claimed."""
    return RunRecord(claim.key, claim.replica, claim.until, RunStatus.RUNNING, claim.now, fingerprint=claim.fingerprint)


class Claimed(Struct, frozen=True):
    """Answer to a claim: the run is now active on the claiming replica."""

    run: RunRecord


class AlreadyExists(Struct, frozen=True):
    """Answer to a claim: a run with these ids exists. It must be read and not executed again."""

    run: RunRecord


class ThreadBusy(Struct, frozen=True):
    """Answer to a claim: the thread has another active run, or a newer run than the one that would be continued."""

    run: RunRecord


class Lease(Struct, frozen=True):
    """A run that a replica executes. ``is_cancel_requested`` is True if its cancellation was requested."""

    key: RunKey
    is_cancel_requested: bool = False


class RunProgress(Struct, frozen=True):
    """Report of a replica on an active run: number of readers, and token usage so far as JSON."""

    key: RunKey
    readers: int = 0
    usage: bytes | None = None


# --- interrupts -------------------------------------------------------------------------------------------------------


class InterruptScope(NamedTuple):
    """Scope of pending interrupts: an assistant's level on a thread.

    Attributes:
        depth: level below the first assistant, from 0. The value -1 is the scope of the goals of an open turn, and -2
            that of the entries that are kept beside the messages, and -3 that of the demands of the callers whose runs
            ended with questions of an agent of one's own.
        owner, thread_id: the client's thread.
        part: id of a subagent's own thread; empty for the client's thread.
    """

    depth: int
    owner: str
    thread_id: str
    part: str = ""

    @property
    def thread(self) -> ThreadKey:
        """Key of the client's thread."""
        return ThreadKey(self.owner, self.thread_id)


class PendingInterrupt(Struct, frozen=True):
    """An interrupt that waits, or has waited, for an answer.

    Attributes:
        id: id within its scope.
        payload: the interrupt, or its accepted answer, as JSON.
        until: time at which it expires.
        is_settled: True if an answer was accepted.
    """

    id: str
    payload: bytes
    until: float
    is_settled: bool = False


class ThreadStatus(StrEnum):
    """Status of a thread: the party whose turn it is."""

    NOT_STARTED = "not_started"
    AGENT_TURN = "agent_turn"
    CLIENT_TOOL_TURN = "client_tool_turn"
    USER_TURN = "user_turn"
    GOALS_FAILED = "goals_failed"


class StoredMessage(Struct, frozen=True):
    """A stored message. ``run_id`` is the run that added it, or None if no run did, as in a fork."""

    id: str
    data: bytes
    run_id: str | None = None


class Change(Struct, frozen=True):
    """Change of a thread by a run. The empty change does nothing.

    Attributes:
        messages: new and changed messages. A known id replaces the stored message, and a new message is appended.
        order: ids of all messages, in order; the others are removed. None if appending the new messages is enough.
        state: shared state as JSON; None if it does not change.
        title: title for a thread that has none.
    """

    messages: Sequence[StoredMessage] = ()
    order: Sequence[str] | None = None
    state: bytes | None = None
    title: str | None = None


class Ending(Struct, frozen=True):
    """End of a run and its effect on the thread.

    Attributes:
        status: any status but ``RUNNING``.
        ended_at: time of the end.
        turn: new status of the thread; None to restore the status before the run.
        usage, error: JSON, as in ``RunRecord``.
        change: last change of the thread.
    """

    status: RunStatus
    ended_at: float
    turn: ThreadStatus | None = ThreadStatus.USER_TURN
    usage: bytes | None = None
    error: bytes | None = None
    change: Change = Change()


class ThreadRecord(Struct, frozen=True):
    """A stored thread, without its messages and state.

    Attributes:
        changed_at: time of the last write. Lists are sorted by it.
        active_run: id of the run that has not ended.
        forked_from: ids of the original thread and of the last message that was copied.
        metadata: JSON object with annotations of transports; None if there are none.
    """

    key: ThreadKey
    status: ThreadStatus
    created_at: float
    changed_at: float
    title: str | None = None
    active_run: str | None = None
    forked_from: tuple[str, str] | None = None
    metadata: bytes | None = None


class GoalStatus(StrEnum):
    """Status of a goal."""

    PENDING = "pending"
    ACHIEVED = "achieved"
    FAILED = "failed"


class StoredGoal(Struct, frozen=True):
    """A goal of a turn.

    Attributes:
        run_id: id of the run that declared it.
        index: position among the goals of that run.
        type: the caller's name of the goal.
        schema: JSON Schema of the result, as JSON.
        result: result of an achieved goal as JSON, else None.
        concluded_at: time at which it was achieved or failed.
    """

    run_id: str
    index: int
    type: str
    schema: bytes
    created_at: float
    status: GoalStatus = GoalStatus.PENDING
    result: bytes | None = None
    concluded_at: float | None = None


class ThreadDelta(Struct, frozen=True):
    """Changes of a thread since a token.

    A reader replaces messages with the ids of ``messages`` and appends the new ones. If ``order`` is not None, the
    reader then sorts all messages by it and drops the messages that it does not list.

    Attributes:
        thread: the current record.
        messages: new and changed messages, in the thread's order.
        order: ids of all messages; None if appending the new messages gives the order.
        state: shared state as JSON; None if it has not changed.
        goals: all goals of the thread, the oldest first; None if none has changed.
        next: token for the next request.
    """

    thread: ThreadRecord
    messages: Sequence[StoredMessage]
    order: Sequence[str] | None
    state: bytes | None
    goals: Sequence[StoredGoal] | None
    next: str

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""
        items = size_of_messages(self.messages) + size_of_goals(self.goals or ())
        return items + len(self.state or b"") + len(self.thread.metadata or b"")


class StoreWarning(Struct, frozen=True):
    """Warning that a store could not read or write a part of a thread, although the operation succeeded.

    Attributes:
        name: kind of warning, for programs.
        message: sentence for people, without exception text.
    """

    name: str
    message: str


# --- feedback ---------------------------------------------------------------------------------------------------------


class Feedback(Struct, frozen=True):
    """A user's feedback on a message. The values of ``sentiment`` and ``categories`` are those of ``commands``."""

    message_id: str
    sentiment: str
    categories: Sequence[str]
    notes: str | None
    created_at: float
    changed_at: float


class Triage(Struct, frozen=True):
    """An operator's assessment of a feedback. It is not shown to the user."""

    label: str | None = None
    note: str | None = None
    resolved_by: str | None = None
    resolved_at: float | None = None


class Review(Struct, frozen=True):
    """A feedback with its thread and triage, for operators."""

    thread: ThreadKey
    feedback: Feedback
    triage: Triage


def merge_metadata(metadata: bytes | None, notes: Mapping[str, object]) -> bytes | None:
    """Return metadata with ``notes`` merged in by name, as JSON. A note of None removes the entry.

    Return None if no entry remains.
    """
    merged = {**(from_json(metadata) if metadata else {}), **notes}
    remaining = {name: value for name, value in merged.items() if value is not None}
    return to_json(remaining) if remaining else None


def size_of_messages(messages: Collection[StoredMessage]) -> int:
    """Return the estimated bytes of messages in memory."""
    return ITEM_BYTES * len(messages) + sum([len(message.data) for message in messages])


def size_of_goals(goals: Collection[StoredGoal]) -> int:
    """Return the estimated bytes of goals in memory."""
    return ITEM_BYTES * len(goals) + sum([len(goal.schema) + len(goal.result or b"") for goal in goals])


def size_of_feedback(feedback: Collection[Feedback]) -> int:
    """Return the estimated bytes of feedback in memory."""
    return ITEM_BYTES * len(feedback) + CHARACTER_BYTES * sum([len(each.notes or "") for each in feedback])
