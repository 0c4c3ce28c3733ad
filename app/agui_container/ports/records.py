"""Records of a store: runs, threads, messages and notes. Frozen data.

Rule: JSON is ``bytes`` and is returned byte for byte. Times are Unix seconds. A store does not interpret events or
messages. It orders and counts them and reports changes.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

T = TypeVar("T")

ITEM_BYTES = 500
"""Estimated bytes of a message or a note in memory in addition to its content."""


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
    """Status of a run, in the store and in the API. A queued run waits for the other runs of its thread."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    ERROR = "error"


OPEN = (RunStatus.QUEUED, RunStatus.RUNNING)
"""Statuses of a run that has not ended."""


class RunRecord(Struct, frozen=True):
    """A stored run.

    Attributes:
        key: key of the run.
        replica: replica that executes the run, or executed it last.
        lease_until: end of the replica's lease unless the replica renews it.
        status: status of the run.
        started_at: time of its arrival.
        last_seq: number of stored envelopes, which is the ``seq`` of the last one.
        ended_at: time of the end; None while the run is open.
        usage: token usage of its model calls so far as JSON; None if unknown.
        error: the error as JSON; None unless the run failed.
        has_events: True while its envelopes can be read. ``Store.forget`` removes them.
        readers: number of readers, according to the last report of its replica.
        fingerprint: fingerprint of its input; None if it was stored without one.
        is_cancel_requested: True if its cancellation was requested.
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
    is_cancel_requested: bool = False

    @property
    def is_open(self) -> bool:
        """True if the run has not ended."""
        return self.status in OPEN


class Claim(Struct, frozen=True):
    """Request of a replica to execute a run.

    Attributes:
        key: key of the run.
        replica: name of the replica.
        lease: duration of the replica's lease, in seconds.
        started_at: time of the run's arrival.
        continues: id of the run that this run continues. A newer run of the thread prevents the claim.
        fingerprint: fingerprint of its input.
        is_queued: True if the run is in the store already, because it waits for other runs of its thread.
        notes: kinds of the thread's notes that the run needs.
    """

    key: RunKey
    replica: str
    lease: float
    started_at: float
    continues: str | None = None
    fingerprint: bytes | None = None
    is_queued: bool = False
    notes: Sequence[str] = ()


class StoreWarning(Struct, frozen=True):
    """Warning that a store could not read or write a part of a thread, although the operation succeeded.

    Attributes:
        name: kind of warning, for programs.
        message: sentence for people, without exception text.
    """

    name: str
    message: str


class Begun(Struct, frozen=True):
    """Answer to a claim: the run is now active on the claiming replica. ``warnings`` are about its thread."""

    run: RunRecord
    warnings: Sequence[StoreWarning] = ()


class Exists(Struct, frozen=True):
    """Answer to a claim: a run with these ids exists. It must be read and not executed again."""

    run: RunRecord


class Busy(Struct, frozen=True):
    """Answer to a claim: this run prevents it, because it is open or newer than the one that would be continued."""

    run: RunRecord


class RunProgress(Struct, frozen=True):
    """Report of a replica on an active run: number of readers, and token usage so far as JSON."""

    key: RunKey
    readers: int = 0
    usage: bytes | None = None


class Lease(Struct, frozen=True):
    """Renewed lease of an open run, with what other replicas want of the run.

    Attributes:
        is_cancel_requested: True if its cancellation was requested.
        is_read_elsewhere: True if a reader on another replica was reported a short time ago.
    """

    is_cancel_requested: bool = False
    is_read_elsewhere: bool = False


DAY = 86_400
"""Seconds of a UTC day. Unix time has no leap seconds."""


class DayTokens(Struct, frozen=True):
    """Tokens of an owner's runs that have ended on the UTC day of ``now``, the time of the store's clock."""

    tokens: int
    now: float

    @property
    def day_ends_at(self) -> float:
        return (self.now // DAY + 1) * DAY


# --- notes ------------------------------------------------------------------------------------------------------------


class ThreadNote(Struct, frozen=True):
    """Data of a thread beside its messages, such as an interrupt that waits, or feedback on a message.

    Attributes:
        kind: kind of the note. The part of the program that writes a kind defines its JSON.
        id: id within the thread and the kind.
        data: JSON.
        until: time at which it expires, in Unix seconds. Its readers check it. None if it does not expire.
        is_settled: True once it must not be settled again.
        message_id: message with which the note is deleted; None if it is deleted with the thread.
    """

    kind: str
    id: str
    data: bytes
    until: float | None = None
    is_settled: bool = False
    message_id: str | None = None


# --- threads ----------------------------------------------------------------------------------------------------------


class ThreadStatus(StrEnum):
    """Status of a thread: the party whose turn it is."""

    NOT_STARTED = "not_started"
    AGENT_TURN = "agent_turn"
    CLIENT_TOOL_TURN = "client_tool_turn"
    USER_TURN = "user_turn"


class StoredMessage(Struct, frozen=True):
    """A stored message. ``run_id`` is the run that added it, or None if no run did, as in a fork."""

    id: str
    data: bytes
    run_id: str | None = None


class Change(Struct, frozen=True):
    """Change of a thread by a run. The empty change does nothing.

    Attributes:
        messages: new and changed messages. A known id replaces the stored message, and a new message is appended.
        order: ids of all messages, in order; the others are removed with their notes. None if appending the new
            messages is enough.
        state: shared state as JSON; None if it does not change.
        title: title for a thread that has none.
        notes: new and changed notes.
    """

    messages: Sequence[StoredMessage] = ()
    order: Sequence[str] | None = None
    state: bytes | None = None
    title: str | None = None
    notes: Sequence[ThreadNote] = ()


class Ending(Struct, frozen=True):
    """End of a run and its effect on the thread.

    Attributes:
        status: status of a run that has ended.
        ended_at: time of the end.
        turn: new status of the thread; None to restore the status before the run.
        usage, error: JSON, as in ``RunRecord``.
        change: last change of the thread.
        tokens: tokens that are added to those of its owner's day.
    """

    status: RunStatus
    ended_at: float
    turn: ThreadStatus | None = ThreadStatus.USER_TURN
    usage: bytes | None = None
    error: bytes | None = None
    change: Change = Change()
    tokens: int = 0


class ThreadRecord(Struct, frozen=True):
    """A stored thread, without its messages and state.

    Attributes:
        changed_at: time of the last write. Lists are sorted by it.
        active_run: id of the run that is executed.
        forked_from: ids of the original thread and of the last message that was copied.
    """

    key: ThreadKey
    status: ThreadStatus
    created_at: float
    changed_at: float
    title: str | None = None
    active_run: str | None = None
    forked_from: tuple[str, str] | None = None


class ThreadDelta(Struct, frozen=True):
    """Changes of a thread since a token.

    A reader replaces messages with the ids of ``messages`` and appends the new ones. If ``order`` is not None, the
    reader then sorts all messages by it and drops the messages that it does not list.

    Attributes:
        thread: the current record.
        messages: new and changed messages, in the thread's order.
        order: ids of all messages; None if appending the new messages gives the order.
        state: shared state as JSON; None if it has not changed.
        next: token for the next request.
        notes: all notes of the kinds that were asked for, in the order of their first writes.
        is_whole: True if it is the whole thread.
    """

    thread: ThreadRecord
    messages: Sequence[StoredMessage]
    order: Sequence[str] | None
    state: bytes | None
    next: str
    notes: Sequence[ThreadNote] = ()
    is_whole: bool = False

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""
        return size_of_messages(self.messages) + size_of_notes(self.notes) + len(self.state or b"")


def size_of_messages(messages: Collection[StoredMessage]) -> int:
    """Return the estimated bytes of messages in memory."""
    return ITEM_BYTES * len(messages) + sum([len(message.data) for message in messages])


def size_of_notes(notes: Collection[ThreadNote]) -> int:
    """Return the estimated bytes of notes in memory."""
    return ITEM_BYTES * len(notes) + sum([len(note.data) for note in notes])
