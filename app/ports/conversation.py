"""What a store keeps of threads: their messages, the goals of their turns, and what people said of them. Frozen data.

Rule: as in ``records``: JSON is bytes, times are Unix seconds, and no message is understood here.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from app.ports.records import RunStatus, ThreadKey


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


class Delta(Struct, frozen=True):
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


class Lapse(Struct, frozen=True):
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
