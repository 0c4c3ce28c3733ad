"""What keeps runs and threads beyond the connections, and where it is durable beyond the process, that made them.

Rule: a run belongs to one replica at a time, by a lease. Every write of a run names the replica and is refused once the
run is another's, so nothing is written twice or after the end. A thread has at most one active run. What a method
promises it promises for several replicas on one store.

Every method raises ``StoreUnavailable`` when the store cannot answer; no error of a database's own leaves it. What was
asked then may have happened or not: every method may be called again with the same arguments, and says so where the
second answer differs. ``now`` and ``until`` are Unix seconds and the caller's.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

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

PAGE = 100
"""Items of a page."""

READ_EVENTS = 1_000
READ_BYTES = 256_000
"""What one read of envelopes gives: no more events, and none once there are so many bytes."""


class StoreUnavailable(Exception):
    """The store is gone, full, too slow or broken. The text is for the log; the same call may succeed later."""


@contextmanager
def store_errors_as_app_errors() -> Iterator[None]:
    """What those are told who asked: raises ``AppError`` STORE_UNAVAILABLE for a store that does not answer."""
    try:
        yield
    except StoreUnavailable as error:
        raise AppError(ErrorCode.STORE_UNAVAILABLE, "What this server keeps cannot be reached right now.") from error


class LeaseLost(Exception):
    """The run is not, or no longer, this replica's to write: taken over, ended or deleted."""


class CannotFork(Exception):
    """There is no such thread or message, or a run is still at it (``active``), or the new id is taken (``taken``)."""

    def __init__(self, reason: str, *, active: bool = False, taken: bool = False) -> None:
        super().__init__(reason)
        self.active = active
        self.taken = taken


class BadToken(ValueError):
    """A page was asked for with a token that this store did not give."""


class RunStore(Protocol):
    """Runs, their envelopes and their leases."""

    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Make the run active, and its thread where there is none; or say what is in the way.

        Whatever is claimed at once, one active run per thread is made. A repeated claim by the same replica is
        ``Known``, with that replica's own name in the record.
        """

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Store the envelopes that follow, in one transaction. Those that are stored already are not stored again.

        Raises:
            LeaseLost: nothing was stored.
            ValueError: their ``seq`` leaves a gap after what is stored.
        """

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, how the run ended and what it did to its thread, and free the thread: all or none.

        A repeated call changes nothing. Raises as ``append``.
        """

    async def change(self, run: RunKey, replica: str, now: float, change: Change) -> None:
        """Change the thread of an active run, as with the messages that a client has sent. Raises ``LeaseLost``."""

    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """What comes after ``seq`` ``after``, in order, without gaps, up to ``READ_EVENTS`` and ``READ_BYTES``.

        Empty where nothing is stored or kept.
        """

    async def get(self, key: RunKey) -> RunRecord | None:
        """The run with this key."""

    async def latest(self, thread: ThreadKey) -> RunRecord | None:
        """The thread's active run, else the one that was claimed last."""

    async def find_by_run_id(self, owner: str, run_id: str) -> RunRecord | None:
        """An owner's run with this id, on whatever thread; of several, the one that was claimed last."""

    async def list(self, owner: str | None, *, active: bool = False, page: str | None = None) -> Page[RunRecord]:
        """Runs of an owner, or of everybody, the newest first; only those that have not ended where ``active``.

        Raises:
            BadToken: ``page`` is not a ``next`` of this list.
        """

    # --- leases ---

    async def renew(self, replica: str, until: float) -> Sequence[Lease]:
        """Hold all runs of the replica until then. Gives what it holds: what is not among them has been lost."""

    async def report_progress(self, replica: str, standings: Sequence[RunProgress]) -> None:
        """Note how active runs of the replica stand. Those that are no longer its own stay as they are."""

    async def request_cancel(self, run: RunKey) -> bool:
        """Ask for the run's end: its replica hears of it when it renews. Gives whether the run is active."""

    async def expired(self, now: float) -> Sequence[RunRecord]:
        """Active runs whose lease is over, the longest first: ``PAGE`` at most."""

    async def take_over(self, run: RunRecord, replica: str, until: float) -> bool:
        """Make an expired run this replica's, provided that it stands as in this record: of several, one gets it.

        False also for a repeated call that had succeeded; ``get`` says whose it is.
        """

    async def forget(self, ended_before: float, *, limit: int = PAGE) -> int:
        """Remove the envelopes of runs that ended before then; gives how many runs. Their records stay."""


class ThreadStore(Protocol):
    """Conversations."""

    async def get(self, key: ThreadKey) -> ThreadRecord | None:
        """A thread's facts."""

    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """An owner's threads, the one that changed last first. Raises ``BadToken``."""

    async def changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta | None:
        """What a thread has become since a token, as of one moment; everything without one, or with a strange one.

        Without ``messages`` it has none of them, and no order. None where there is no such thread.
        """

    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Give a thread a title, or take it away. Gives whether there is such a thread."""

    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Put JSON values into a thread's metadata by their names; None takes one away. Other names stay as they are.

        Gives whether there is such a thread. A fork begins without metadata.
        """

    async def delete(self, key: ThreadKey) -> bool:
        """Remove a thread and everything of it. Whoever still runs on it gets ``LeaseLost``. Gives whether it was."""

    async def fork(
        self,
        source: ThreadKey,
        message_id: str,
        thread_id: str,
        now: float,
        turn: ThreadStatus = ThreadStatus.USER_TURN,
    ) -> ThreadRecord:
        """A new thread of the same owner with the history up to and including a message, the title and the state.

        ``turn`` is whose turn it is on it.

        A repeated call gives the thread that the first one made.

        Raises:
            CannotFork: no such message, one of a run that is active, or the new thread's id is taken.
        """


class GoalStore(Protocol):
    """What callers want of a turn. A thread's goals are part of its ``changes``."""

    async def declare(self, run: RunKey, goals: Sequence[StoredGoal]) -> None:
        """Store the goals of a run. Those that are declared already stay as they are. Nothing without the run."""

    async def conclude(
        self, run: RunKey, index: int, status: GoalStatus, now: float, *, result: bytes | None = None
    ) -> None:
        """Give a goal its end, if it is pending: of several ends, the first counts."""


class InterruptStore(Protocol):
    """What waits for an answer, and the answers that were taken."""

    async def put(self, place: InterruptScope, held: Sequence[PendingInterrupt]) -> None:
        """Store these, open or settled as they say. One of a known id takes that one's place, also in the order."""

    async def list_open(self, place: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """What has not expired, in the order in which it was first held."""

    async def settle(self, place: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002
        """Settle what is open and has not expired: of several answers, one gets True, and its payload stays.

        A repeated call that had succeeded gives False, like any later one.
        """

    async def expire(self, now: float) -> None:
        """Remove what has expired."""


class FeedbackStore(Protocol):
    """What users say of messages, and what operators make of it."""

    async def put(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store a feedback in place of the one on the same message, whose ``created_at`` and triage stay.

        None where there is no such message.
        """

    async def list_for(self, thread: ThreadKey) -> Sequence[Feedback]:
        """What was said of a thread's messages, the oldest first."""

    async def reviews(self, *, resolved: bool | None = None, page: str | None = None) -> Page[Review]:
        """For operators: what everybody said, the newest first, resolved or not. Raises ``BadToken``."""

    async def triage(self, thread: ThreadKey, message_id: str, triage: Triage) -> Review | None:
        """For operators: put this in place of a feedback's triage. None where there is no such feedback."""


class Store(Protocol):
    """All of it, each part for those who need it."""

    @property
    def runs(self) -> RunStore:
        """Runs."""

    @property
    def threads(self) -> ThreadStore:
        """Threads."""

    @property
    def goals(self) -> GoalStore:
        """Goals."""

    @property
    def interrupts(self) -> InterruptStore:
        """Interrupts."""

    @property
    def feedbacks(self) -> FeedbackStore:
        """Feedback."""

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:
        """What was not read or written of a thread although its run went on. Never waits; each is told once."""

    async def open(self) -> None:
        """Connect, and bring an older database up to date. Replicas may do so at once."""

    async def aclose(self) -> None:
        """Let go of connections. Nothing is asked any more."""


@runtime_checkable
class StoreUser(Protocol):
    """An agent that keeps something between runs."""

    def with_store(self, store: Store, depth: int = 0) -> Agent:
        """The same agent, keeping it there; ``depth`` is how many assistants hand work down to it."""
