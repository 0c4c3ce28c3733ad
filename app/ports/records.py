"""What a store keeps of runs, and of what waits for an answer. Frozen data.

Rule: JSON is bytes here and is given back byte for byte; times are Unix seconds. The store knows no AG-UI event or
message: it orders them, counts them, and says what has changed.
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
    def active(self) -> bool:
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


class Known(Struct, frozen=True):
    """These ids were claimed before. Read that run; do not run it again."""

    run: RunRecord


class Busy(Struct, frozen=True):
    """The thread has this active run."""

    run: RunRecord


class Lease(Struct, frozen=True):
    """A run that a replica holds. ``unwanted`` says that somebody has asked for its end."""

    key: RunKey
    unwanted: bool = False


class Standing(Struct, frozen=True):
    """How an active run stands with its replica: who reads it, and its ``usage`` so far."""

    key: RunKey
    readers: int = 0
    usage: bytes | None = None


# --- interrupts -------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
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


class Held(Struct, frozen=True):
    """Something that waits for an answer, or has waited: its id within its place, and what it is, as JSON.

    ``until`` is when it is forgotten, and ``settled`` whether its answer has been taken.
    """

    id: str
    payload: bytes
    until: float
    settled: bool = False
