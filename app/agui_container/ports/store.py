"""Port of stores: runs, threads, goals, interrupts and feedback.

Rule: a run belongs to one replica at a time, by a lease. Every write of a run names the replica and is refused if the
run belongs to another one, so nothing is written twice or after the end. A thread has at most one active run. All
guarantees hold for several replicas on one store.

Every method raises ``StoreUnavailable`` if the store does not answer, and no exception of the database's client
library. The operation may or may not have happened then. Every method may be repeated with the same arguments; its
docstring says so if the second answer differs. ``now`` and ``until`` are Unix seconds of the caller's clock.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from msgspec import Struct

from agui_container.ports.agent import Agent
from agui_container.ports.records import (
    AlreadyExists,
    Change,
    Claim,
    Claimed,
    Ending,
    Feedback,
    GoalStatus,
    InterruptScope,
    Lease,
    Page,
    PendingInterrupt,
    Review,
    RunKey,
    RunProgress,
    RunRecord,
    StoredGoal,
    StoredMessage,
    StoreWarning,
    ThreadBusy,
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
    Triage,
)
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope

logger = logging.getLogger(__name__)

PAGE = 100
"""Default number of items of a page."""

READ_EVENTS = 1_000
READ_BYTES = 256_000
"""Limits of one read: the number of events, and the bytes after which no further event or message is added."""

GIVE_UP_SECONDS = 20.0
"""Longest outage of the store before its runs are ended and their readers get an error."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Shortest and longest seconds between two attempts to claim a busy thread or to reach the store."""


class StoreUnavailable(Exception):
    """The store is unreachable, full, too slow or broken. The text is for the log. The same call may succeed later."""


@contextmanager
def store_errors_as_app_errors() -> Iterator[None]:
    """Log ``StoreUnavailable`` and convert it into ``AppError`` STORE_UNAVAILABLE, which clients may see."""
    try:
        yield
    except StoreUnavailable as error:
        logger.warning("store unavailable error=%r", str(error))
        raise AppError(ErrorCode.STORE_UNAVAILABLE, "The store of this server cannot be reached right now.") from error


class LeaseLost(Exception):
    """The replica may not write the run, because it was taken over, has ended or was deleted."""


class Fork(Struct, frozen=True):
    """A copy of a thread, up to and including a message.

    Attributes:
        source: key of the thread.
        message_id: id of the last message that is copied.
        thread_id: id of the new thread, which has the same owner.
        status: status of the new thread.
    """

    source: ThreadKey
    message_id: str
    thread_id: str
    created_at: float
    status: ThreadStatus = ThreadStatus.USER_TURN

    @property
    def key(self) -> ThreadKey:
        """Key of the new thread."""
        return ThreadKey(self.source.owner, self.thread_id)

    @property
    def origin(self) -> tuple[str, str]:
        """``ThreadRecord.forked_from`` of the new thread."""
        return self.source.thread_id, self.message_id


class CannotFork(Exception):
    """A thread cannot be forked, because the thread or the message does not exist or for one of the reasons below.

    Args:
        reason: text for the log.
        active: True if the run of the message is still active.
        id_exists: True if the new thread's id exists.
    """

    def __init__(self, reason: str, *, active: bool = False, id_exists: bool = False) -> None:
        super().__init__(reason)
        self.active = active
        self.id_exists = id_exists


class BadToken(ValueError):
    """A page token that this store did not issue."""


class RunStore(Protocol):
    """Runs, their envelopes and their leases."""

    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Create an active run, and its thread if it does not exist.

        Of several concurrent claims on a thread, one succeeds. A claim that continues a run succeeds only if no later
        run of the thread is stored. A repeated claim of the same replica returns ``AlreadyExists`` with a record that
        names the replica.

        Returns:
            ``Claimed``, or the run that prevents the claim.
        """

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Store the next envelopes, in one transaction. Envelopes that are stored already are skipped.

        Raises:
            LeaseLost: the run belongs to another replica or has ended. Nothing was stored.
            ValueError: there is a gap between the last stored ``seq`` and the first new one.
        """

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, the end of the run and its change of the thread, and free the thread.

        All of it happens in one transaction. A repeated call changes nothing. Raises the same exceptions as ``append``.
        """

    async def change(self, run: RunKey, replica: str, now: float, change: Change) -> None:
        """Change the thread of an active run, for example by the client's messages. Raises ``LeaseLost``."""

    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """Return the envelopes after ``seq`` ``after``, in order and without gaps, within the limits of one read.

        The result is empty if there are no such envelopes or they were removed.
        """

    async def get(self, key: RunKey) -> RunRecord | None:
        """Return the run with this key, or None."""

    async def latest(self, thread: ThreadKey) -> RunRecord | None:
        """Return the thread's active run, else the last claimed one, or None."""

    async def find_by_run_id(self, owner: str, run_id: str) -> RunRecord | None:
        """Return an owner's run with this id on any thread: the last claimed one, or None."""

    async def list(self, owner: str | None, *, active: bool = False, page: str | None = None) -> Page[RunRecord]:
        """Return a page of runs, the newest first.

        Args:
            owner: owner of the runs; None for all owners.
            active: True to list only runs that have not ended.
            page: token of the page; None for the first one.

        Raises:
            BadToken: ``page`` is not a ``next`` of this list.
        """

    # --- leases ---

    async def renew(self, replica: str, until: float) -> Sequence[Lease]:
        """Renew the leases of all runs of the replica.

        Returns:
            The runs that the replica still executes. It has lost all others.
        """

    async def report_progress(self, replica: str, progress: Sequence[RunProgress]) -> None:
        """Store the progress of active runs of the replica. Runs that belong to another replica are ignored."""

    async def request_cancel(self, run: RunKey) -> bool:
        """Request the cancellation of a run. Return True if the run is active.

        ``renew`` reports the request to the run's replica.
        """

    async def expired(self, now: float) -> Sequence[RunRecord]:
        """Return up to ``PAGE`` active runs with an expired lease, the longest expired first."""

    async def take_over(self, run: RunRecord, replica: str, until: float) -> bool:
        """Assign an expired run to this replica if it has not changed since this record was read.

        Of several replicas, one gets True. A repeated call that had succeeded returns False; ``get`` then shows which
        replica has the run.
        """

    async def forget(self, ended_before: float, *, limit: int = PAGE) -> int:
        """Remove the envelopes of up to ``limit`` runs that ended before the given time, and keep their records.

        Returns:
            The number of runs.
        """


class ThreadStore(Protocol):
    """Threads with their messages and states."""

    async def get(self, key: ThreadKey) -> ThreadRecord | None:
        """Return the record of a thread, or None."""

    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """Return a page of an owner's threads, the last changed first. Raises ``BadToken``."""

    async def changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta | None:
        """Return the changes of a thread since a token, as a consistent snapshot.

        Args:
            key: key of the thread.
            since: token of an earlier delta. Without a token, or with an unknown one, the result is the whole thread.
            messages: False to omit the messages and their order.

        Returns:
            None if the thread does not exist.
        """

    async def has_messages(self, key: ThreadKey) -> bool:
        """Return True if the thread exists and has messages."""

    async def message(self, key: ThreadKey, message_id: str) -> StoredMessage | None:
        """Return a message of a thread, or None."""

    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None
    ) -> Page[StoredMessage] | None:
        """Return the last messages of a thread, in the thread's order.

        Args:
            key: key of the thread.
            limit: most messages of the page. It has fewer if they have more than ``READ_BYTES``, and at least one.
            before: id of a message, to read the messages before it; None to read the end of the thread.

        Returns:
            The page, or None if the thread does not exist. ``next`` is the id of the page's first message.

        Raises:
            BadToken: ``before`` is not a message of the thread.
        """

    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Set the title of a thread; None removes it. Return True if the thread exists."""

    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Set JSON values in a thread's metadata by name. The value None removes a name. Other names stay unchanged.

        A fork begins without metadata. Return True if the thread exists.
        """

    async def delete(self, key: ThreadKey) -> bool:
        """Delete a thread and everything that belongs to it. Writes of its active run then raise ``LeaseLost``.

        Returns:
            True if the thread existed.
        """

    async def fork(self, fork: Fork) -> ThreadRecord:
        """Create a thread of the same owner with the history up to and including a message, the title and the state.

        A repeated call returns the thread of the first call.

        Raises:
            CannotFork: the message does not exist or its run is active, or the new thread's id exists.
        """


class GoalStore(Protocol):
    """Goals of turns. ``ThreadStore.changes`` includes a thread's goals."""

    async def declare(self, run: RunKey, goals: Sequence[StoredGoal]) -> None:
        """Store the goals of a run. Existing goals stay unchanged. Nothing is stored if the run does not exist."""

    async def conclude(
        self, run: RunKey, index: int, status: GoalStatus, now: float, *, result: bytes | None = None
    ) -> None:
        """Set the final status of a pending goal. The first call wins, and later calls change nothing."""


class InterruptStore(Protocol):
    """Interrupts that wait for an answer, and the accepted answers."""

    async def put(self, scope: InterruptScope, interrupts: Sequence[PendingInterrupt]) -> None:
        """Store open or settled interrupts. An interrupt with a known id replaces the stored one at its position."""

    async def list_open(self, scope: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """Return the interrupts that have not expired, open or settled, in the order of their first ``put``."""

    async def settle(self, scope: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002
        """Settle an interrupt that is open and has not expired.

        Of several answers, one gets True and its payload is stored. A repeated call that had succeeded returns False.
        """

    async def expire(self, now: float) -> None:
        """Remove expired interrupts."""


class FeedbackStore(Protocol):
    """Users' feedback on messages, and operators' triage of it."""

    async def put(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store a feedback, or replace the one on the same message and keep its ``created_at`` and triage.

        Returns:
            The stored feedback, or None if the message does not exist.
        """

    async def list_for(self, thread: ThreadKey) -> Sequence[Feedback]:
        """Return the feedback on a thread's messages, the oldest first."""

    async def reviews(self, *, resolved: bool | None = None, page: str | None = None) -> Page[Review]:
        """Return a page of the feedback of all owners for operators, the newest first. Raises ``BadToken``.

        ``resolved`` selects resolved or unresolved feedback; None selects both.
        """

    async def triage(self, thread: ThreadKey, message_id: str, triage: Triage) -> Review | None:
        """Replace the triage of a feedback. Return None if the feedback does not exist."""


class Store(Protocol):
    """A store with all its parts."""

    @property
    def runs(self) -> RunStore:
        """Store of runs."""

    @property
    def threads(self) -> ThreadStore:
        """Store of threads."""

    @property
    def goals(self) -> GoalStore:
        """Store of goals."""

    @property
    def interrupts(self) -> InterruptStore:
        """Store of interrupts."""

    @property
    def feedbacks(self) -> FeedbackStore:
        """Store of feedback."""

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:
        """Return and remove the warnings about a thread. It never waits."""

    async def open(self) -> None:
        """Connect, and migrate an older database. Several replicas may do so at the same time."""

    async def aclose(self) -> None:
        """Close all connections. No other method is called afterwards."""


@runtime_checkable
class StoreUser(Protocol):
    """An agent that stores data between runs."""

    def with_store(self, store: Store, depth: int = 0) -> Agent:
        """Return the same agent with this store. ``depth`` is the number of assistants above it."""
