"""What a store keeps of runs, and of what waits for an answer. Frozen data.

Rule: JSON is bytes here and is given back byte for byte; times are Unix seconds. The store knows no AG-UI event or
message: it orders them, counts them, and says what has changed.

What a store keeps of threads: their messages, the goals of their turns, and what people said of them. Frozen data.

Rule: as in ``records``: JSON is bytes, times are Unix seconds, and no message is understood here.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

T = TypeVar("T")


class ThreadKey(NamedTuple):
    """A thread: who owns it, and the client's id of it."""

    owner: str
    thread_id: str


class RunKey(NamedTuple):
    """A run: who owns it, its thread, and the client's id of it."""

    owner: str
    thread_id: str
    run_id: str

    @property
    def thread(self) -> ThreadKey:
        """The thread it runs on."""
        return ThreadKey(self.owner, self.thread_id)


class Page(Struct, Generic[T], frozen=True):
    """A part of a list. ``next`` is what to ask for the rest with; None when this was the end."""

    items: Sequence[T]
    next: str | None = None


# --- runs -------------------------------------------------------------------------------------------------------------


class RunStatus(StrEnum):
    """How a stored run stands. A run that waits in line is not stored."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    ERROR = "error"


class RunRecord(Struct, frozen=True):
    """A run as it is stored.

    Attributes:
        replica: who runs it, or ran it last.
        lease_until: until when that is so without a word from there.
        last_seq: how many envelopes are stored; the last one's ``seq``.
        usage: JSON, what its model calls have cost so far; None where nothing is known.
        error: JSON; None unless it failed.
        kept: whether its envelopes can still be read. ``forget`` ends that.
        readers: how many read it, as its replica has said last.
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
    kept: bool = True
    readers: int = 0

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.status is RunStatus.RUNNING


class Claim(Struct, frozen=True):
    """A wish to run: by which replica, and held until when."""

    key: RunKey
    replica: str
    now: float
    until: float


class Claimed(Struct, frozen=True):
    """The run is the claimant's."""

    run: RunRecord


class AlreadyExists(Struct, frozen=True):
    """These ids were claimed before. Read that run; do not run it again."""

    run: RunRecord


class ThreadBusy(Struct, frozen=True):
    """The thread has this active run."""

    run: RunRecord


class Lease(Struct, frozen=True):
    """A run that a replica holds. ``is_rejected`` says that somebody has asked for its end."""

    key: RunKey
    is_cancel_requested: bool = False


class RunProgress(Struct, frozen=True):
    """How an active run stands with its replica: who reads it, and its ``usage`` so far."""

    key: RunKey
    readers: int = 0
    usage: bytes | None = None


# --- interrupts -------------------------------------------------------------------------------------------------------


class InterruptScope(NamedTuple):
    """Where something waits for an answer: how deep below the first assistant, on which thread, in which part of it.

    At depth -1 a thread's turn waits to be taken up again. ``part`` is a subagent's own thread; empty for the client's.
    """

    depth: int
    owner: str
    thread_id: str
    part: str = ""

    @property
    def thread(self) -> ThreadKey:
        """The thread that it goes with."""
        return ThreadKey(self.owner, self.thread_id)


class PendingInterrupt(Struct, frozen=True):
    """Something that waits for an answer, or has waited: its id within its place, and what it is, as JSON.

    ``until`` is when it is forgotten, and ``settled`` whether its answer has been taken.
    """

    id: str
    payload: bytes
    until: float
    settled: bool = False


class ThreadStatus(StrEnum):
    """Whose turn it is on a thread."""

    NOT_STARTED = "not_started"
    AGENT_TURN = "agent_turn"
    CLIENT_TOOL_TURN = "client_tool_turn"
    USER_TURN = "user_turn"
    GOALS_FAILED = "goals_failed"


class StoredMessage(Struct, frozen=True):
    """A message: its id, its JSON, and the run that brought it; None where no run did, as in a fork."""

    id: str
    data: bytes
    run_id: str | None = None


class Change(Struct, frozen=True):
    """What a run does to its thread. The empty change does nothing.

    Attributes:
        messages: new or changed ones. One of a known id takes that one's place; a new one goes to the end.
        order: the ids of all messages, where putting new ones to the end is not the order; those left out are removed.
        state: JSON; None leaves it as it is.
        title: for a thread that has none.
    """

    messages: Sequence[StoredMessage] = ()
    order: Sequence[str] | None = None
    state: bytes | None = None
    title: str | None = None


class Ending(Struct, frozen=True):
    """How a run ended, and what that does to its thread.

    Attributes:
        status: anything but running.
        turn: whose turn it is now; None where it is whose it was before the run.
        usage, error: JSON, as in ``RunRecord``.
    """

    status: RunStatus
    ended_at: float
    turn: ThreadStatus | None = ThreadStatus.USER_TURN
    usage: bytes | None = None
    error: bytes | None = None
    change: Change = Change()


class ThreadRecord(Struct, frozen=True):
    """A thread's facts, without its messages and state.

    Attributes:
        active_run: the id of the run that has not ended.
        changed_at: when it last was written to; lists are in this order.
        forked_from: the thread and the message that it is a copy up to.
        metadata: a JSON object of what transports note of the thread; None where they have noted nothing.
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
    """How a goal stands."""

    PENDING = "pending"
    ACHIEVED = "achieved"
    FAILED = "failed"


class StoredGoal(Struct, frozen=True):
    """What a caller wants of a turn.

    Attributes:
        index: its place among the run's goals.
        type: what the caller calls it.
        schema: JSON Schema of its result, as JSON.
        result: JSON; what it was achieved with.
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
    """What of a thread is not known yet to somebody who has everything up to a token.

    Put ``messages`` in place of those with their ids, and new ones at the end; then, where ``order`` is given, put all
    in that order and drop those that it leaves out. That is the thread.

    Attributes:
        thread: its facts as they are.
        messages: new or changed ones, in the thread's order.
        order: ids of all messages; None where they are in the order that the rule above gives.
        state: JSON; None where it has not changed.
        goals: all of the thread, oldest first; None where none has changed.
        next: the token for the next time.
    """

    thread: ThreadRecord
    messages: Sequence[StoredMessage]
    order: Sequence[str] | None
    state: bytes | None
    goals: Sequence[StoredGoal] | None
    next: str


class StoreWarning(Struct, frozen=True):
    """What a store could not do for a thread and did not fail for.

    Attributes:
        name: what it was, for programs.
        message: the same for people; nothing of an exception.
    """

    name: str
    message: str


# --- feedback ---------------------------------------------------------------------------------------------------------


class Feedback(Struct, frozen=True):
    """What a user says of a message. ``sentiment`` and ``categories`` are words that the engine knows."""

    message_id: str
    sentiment: str
    categories: Sequence[str]
    notes: str | None
    created_at: float
    changed_at: float


class Triage(Struct, frozen=True):
    """What operators make of a feedback. Not for its user's eyes."""

    label: str | None = None
    note: str | None = None
    resolved_by: str | None = None
    resolved_at: float | None = None


class Review(Struct, frozen=True):
    """A feedback as operators see it."""

    thread: ThreadKey
    feedback: Feedback
    triage: Triage
