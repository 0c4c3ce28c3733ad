"""Port of stores: runs, threads and their notes.

Rule: a run belongs to one replica at a time, by a lease. Every write of a run names the replica and is refused if the
run belongs to another one, so nothing is written twice or after the end. A thread has at most one active run. All
guarantees hold for several replicas on one store.

Every method raises ``StoreUnavailable`` if the store does not answer, and no exception of the database's client
library. The operation may or may not have happened then. Every method may be repeated with the same arguments; its
docstring says so if the second answer differs. Leases are measured by the store's own clock, so replicas' clocks may
differ. All other times are Unix seconds of the caller's clock.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from agui_container.log_values import format_fields
from agui_container.ports.agent import Agent
from agui_container.ports.records import (
    Begun,
    Busy,
    Change,
    Claim,
    DayTokens,
    Ending,
    Exists,
    Lease,
    Page,
    RunKey,
    RunProgress,
    RunRecord,
    StoredMessage,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 100
"""Default number of items of a page."""

READ_EVENTS = 1_000
READ_BYTES = 256_000
"""Limits of one read: the number of events, and the bytes after which no further event or message is added."""

GIVE_UP_SECONDS = 20.0
"""Longest outage of the store before its runs are ended and their readers get an error."""

READER_SECONDS = 6.0
"""Time that a reader on another replica counts after a report of it."""

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
        logger.warning("store unavailable %s", format_fields({"error": error}))
        raise AppError(ErrorCode.STORE_UNAVAILABLE, "The store of this server cannot be reached right now.") from error


async def wait_for_store(
    request: Callable[[], Awaitable[T]], run_id: str, is_wanted: Callable[[], bool] = lambda: True
) -> T:
    """Repeat a request to the store for a run until the store answers, for ``GIVE_UP_SECONDS`` and while it is wanted.

    A claim whose first attempt succeeded without an answer fails when it is repeated, so its call is not run.

    Raises:
        StoreUnavailable: the store did not answer in this time.
    """
    attempt, pause, deadline = 1, FIRST_PAUSE, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
    while True:
        try:
            return await request()
        except StoreUnavailable as error:
            logger.warning("store unavailable %s", format_fields({"run": run_id, "attempt": attempt, "error": error}))
            if not is_wanted() or asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(pause)
        attempt, pause = attempt + 1, min(2 * pause, LONGEST_PAUSE)


class LeaseLost(Exception):
    """The replica may not write the run, because it was taken over, has ended or was deleted."""


class RunQuery(Struct, frozen=True):
    """Conditions of a list of runs. None is no condition.

    Attributes:
        owner: owner of the runs.
        thread_id: id of their thread.
        run_id: their id. The same id may be used on several threads.
        is_open: True to list only runs that have not ended.
    """

    owner: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    is_open: bool = False


class Rename(Struct, frozen=True):
    """A new title of a thread. None removes the title. The place of the thread in lists stays."""

    title: str | None


class Delete(Struct, frozen=True):
    """The deletion of a thread and of everything that belongs to it."""


class Fork(Struct, frozen=True):
    """A new thread of the same owner with the history up to and including a message, the title and the state.

    Attributes:
        message_id: id of the last message that is copied.
        thread_id: id of the new thread.
        status: status of the new thread.
    """

    message_id: str
    thread_id: str
    created_at: float
    status: ThreadStatus = ThreadStatus.USER_TURN


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


Merge = Callable[[ThreadDelta], Awaitable[Change]]
"""Merges the input of a run with its stored thread. Returns the change of the thread by the input."""


class NoteStore(Protocol):
    """Notes of threads."""

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        """Return the notes of some kinds, also expired ones, in the order of their first writes."""

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        """Store notes, in one transaction. A note with a known kind and id replaces the stored one at its position.

        Return True if the thread exists. Otherwise nothing is stored.
        """

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        """Replace a stored note that is not settled by this one, which is.

        Of several concurrent calls, one gets True and its note is stored. A repeated call that had succeeded returns
        False.
        """


class Store(NoteStore, Protocol):
    """Threads with their messages and states, and the runs on them. A ``DurableStore`` has their events and leases."""

    # --- the life of a run ---

    async def enqueue(self, claim: Claim) -> RunRecord | None:
        """Store a run that waits for other runs of its thread, and the thread if it does not exist.

        Return None, or the run with these ids if there is one. A repeated call of the same replica returns that run.
        """

    async def begin(self, claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        """Claim the thread, read it, merge the run's input with it and store the result, in one transaction.

        Of several concurrent claims on a thread, one succeeds. A run waits for the queued runs of other replicas that
        were stored before it; each replica orders its own. A claim that continues a run succeeds only if no later run
        of the thread has begun. A repeated claim of the same replica returns ``Exists`` with a record that names the
        replica. If ``merge`` raises, nothing is stored.

        Raises:
            LeaseLost: the claim is that of a queued run, and the run was deleted or taken over.
        """

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """Store the last envelopes, the end of the run and its change of the thread, and free the thread.

        All of it happens in one transaction. A repeated call changes nothing. The end of a queued run leaves the status
        of the thread as it is. Only a ``DurableStore`` stores envelopes.

        Raises:
            LeaseLost: the run belongs to another replica or has ended. Nothing was stored.
            ValueError: there is a gap between the last stored ``seq`` and the first new one.
        """

    async def run(self, key: RunKey) -> RunRecord | None:
        """Return the run with this key, or None."""

    async def tokens(self, owner: str) -> DayTokens:
        """Return the tokens of the endings of this day, also those of threads that were deleted since."""

    # --- threads ---

    async def thread(
        self, key: ThreadKey, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
    ) -> ThreadDelta | None:
        """Return the changes of a thread since a token, as a consistent snapshot.

        Args:
            key: key of the thread.
            since: token of an earlier delta. Without a token, or with an unknown one, the result is the whole thread.
            messages: False to omit the messages and their order.
            notes: kinds of the notes to include, whether they have changed or not.

        Returns:
            None if the thread does not exist.
        """

    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None, last: str | None = None
    ) -> Page[StoredMessage] | None:
        """Return the last messages of a thread, in the thread's order.

        Args:
            key: key of the thread.
            limit: most messages of the page. It has fewer if they have more than ``READ_BYTES``, and at least one.
            before: id of a message, to read the messages before it.
            last: id of the last message to read. Without either, the end of the thread is read.

        Returns:
            The page, or None if the thread does not exist. ``next`` is the id of the page's first message.

        Raises:
            BadToken: ``before`` or ``last`` is not a message of the thread.
        """

    async def threads(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """Return a page of an owner's threads, the last changed first. Raises ``BadToken``."""

    async def edit(self, key: ThreadKey, edit: Rename | Fork | Delete) -> ThreadRecord | None:
        """Change the title of a thread, copy it or delete it.

        A repeated fork returns the thread of the first call. Writes of the runs of a deleted thread raise
        ``LeaseLost``.

        Returns:
            The renamed, new or deleted thread, or None if the thread does not exist.

        Raises:
            CannotFork: the message does not exist or its run is active, or the new thread's id exists.
        """

    # --- the process ---

    @property
    def writes_turns(self) -> bool:
        """True if the end of a run is written to a service that outlives the process, although its events are not."""

    async def open(self) -> None:
        """Connect, and migrate an older database. Several replicas may do so at the same time."""

    async def aclose(self) -> None:
        """Close all connections. No other method is called afterwards."""


@runtime_checkable
class DurableStore(Store, Protocol):
    """A store whose runs outlive the process, with their envelopes and their leases. Replicas may share it."""

    async def append(self, run: RunKey, replica: str, envelopes: Sequence[Envelope]) -> None:
        """Store the next envelopes, in one transaction. Envelopes that are stored already are skipped.

        Raises the same exceptions as ``finish``.
        """

    async def renew(self, replica: str, lease: float, progress: Sequence[RunProgress] = ()) -> Mapping[RunKey, Lease]:
        """Renew the leases of all open runs of the replica for ``lease`` seconds, and store their progress.

        Returns:
            The leases of the replica's open runs. It has lost all others.
        """

    async def cancel(self, run: RunKey) -> bool:
        """Request the cancellation of a run. Return True if the run is open. ``renew`` reports it to its replica."""

    async def report_reader(self, run: RunKey) -> None:
        """Report a reader on another replica. ``renew`` passes it to the run's replica for ``READER_SECONDS``."""

    async def take_over(self, replica: str, lease: float) -> Sequence[RunRecord]:
        """Assign up to ``PAGE`` open runs of other replicas whose lease has expired to this replica.

        Of several replicas, one gets a run. Returns the records as they were before.
        """

    async def forget(self, ended_before: float, notes_until: float, *, limit: int = PAGE) -> int:
        """Remove the envelopes of old runs, whose records stay, and expired notes.

        Args:
            ended_before: time before which the runs have ended.
            notes_until: time up to which the notes expire.
            limit: most runs of one call.

        Returns:
            The number of runs.
        """

    async def runs(self, query: RunQuery, *, limit: int = PAGE, page: str | None = None) -> Page[RunRecord]:
        """Return a page of runs, the newest first. Raises ``BadToken`` if ``page`` is not a ``next`` of this list."""

    async def envelopes(self, run: RunKey, after: int) -> Sequence[Envelope]:
        """Return the envelopes after ``seq`` ``after``, in order and without gaps, within the limits of one read.

        The result is empty if there are no such envelopes or they were removed.
        """


@runtime_checkable
class StoreUser(Protocol):
    """An agent that stores data between runs."""

    def with_store(self, store: Store, depth: int = 0) -> Agent:
        """Return the same agent with this store. ``depth`` is the number of assistants above it."""
