"""The life of a run: its phases, the answer to the request that it comes from, and its readers.

Rule: a run exists from the moment of its request. What it becomes is decided in its own task, so a request that leaves,
a cancel and a shutdown treat a run that has not begun like any other.

Rule: a run without readers may be cancelled (``OnDisconnect``). A reader on another replica prevents that. Each renewal
of the run's lease says if it is read on another replica. All readers there count as one.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from enum import Enum, auto
from functools import partial

from agui_container.ports import Clock, Timer
from agui_container.protocol.errors import AppError
from agui_container.run.endings import CancelReason
from agui_container.run.subscription import Readable


class RunPhase(Enum):
    """Phases in the life of a run. ``RunLife.enter`` has the transitions."""

    ADMITTING = auto()
    WAITING = auto()
    RUNNING = auto()
    ENDED = auto()
    STORED = auto()


NEXT_PHASES: Mapping[RunPhase, Collection[RunPhase]] = {
    RunPhase.ADMITTING: (RunPhase.WAITING, RunPhase.RUNNING, RunPhase.ENDED),
    RunPhase.WAITING: (RunPhase.RUNNING, RunPhase.ENDED),
    RunPhase.RUNNING: (RunPhase.ENDED,),
    RunPhase.ENDED: (RunPhase.STORED,),
    RunPhase.STORED: (),
}


class RunLife:
    """Phase of one run, and the outcome of its admission."""

    __slots__ = ("_outcome", "_settled", "is_dropped", "phase")

    def __init__(self) -> None:
        self.phase = RunPhase.ADMITTING
        self.is_dropped = False
        """True if the run was refused, or another one is read in its place."""
        self._outcome: AppError | Readable | None = None
        self._settled = asyncio.Event()

    def enter(self, phase: RunPhase) -> None:
        """Enter the next phase.

        | from | to | when |
        |---|---|---|
        | admitting | waiting | the store has it behind other runs of its thread |
        | admitting, waiting | running | the store has begun it; RUN_STARTED is in the log and the agent begins |
        | admitting | ended | it is refused, or another run is read in its place: it leaves nothing behind |
        | admitting, waiting, running | ended | its terminal event is in the log |
        | ended | stored | a store that outlives the process has its end |

        The request of a run is answered when it leaves the first phase. A run that is cancelled before it has begun is
        begun and ended in the store afterwards, so that its messages are kept.
        """
        if phase not in NEXT_PHASES[self.phase]:
            raise AssertionError(f"a run cannot become {phase.name} from {self.phase.name}")
        self.phase = phase

    @property
    def has_begun(self) -> bool:
        return self.phase not in {RunPhase.ADMITTING, RunPhase.WAITING}

    def drop(self, outcome: AppError | Readable) -> None:
        """End a run that was refused, or in whose place another one is read."""
        self.enter(RunPhase.ENDED)
        self.is_dropped = True
        self._outcome = outcome

    def settle(self) -> None:
        """Answer the request."""
        self._settled.set()

    async def wait_settled(self) -> Readable | None:
        """Wait until the request is answered. Return another run if that one is read in place of this one.

        Raises:
            AppError: the run was refused.
        """
        if not self._settled.is_set():
            await self._settled.wait()
        if isinstance(self._outcome, AppError):
            raise self._outcome
        return self._outcome


class Readers:
    """Readers of one run. ``cancel`` is called ``grace`` seconds after the last one has left: None is never."""

    __slots__ = ("_cancel", "_clock", "_grace", "_is_read_elsewhere", "_timer", "local")

    def __init__(self, clock: Clock, grace: float | None, cancel: Callable[[CancelReason], None]) -> None:
        self.local = 0
        """Readers of this process."""
        self._clock = clock
        self._grace = grace
        self._cancel = cancel
        self._timer: Timer | None = None
        """Timer that cancels the run; set while the run has no reader in this process."""
        self._is_read_elsewhere = False

    def enter(self) -> None:
        self.local += 1
        self._stop_grace()

    def leave(self) -> None:
        """Remove a reader of this process."""
        self.local -= 1
        if not self.local:
            self._start_grace()

    def report_elsewhere(self, *, is_read: bool) -> None:
        """Record if another replica has readers. A grace begins anew if it has."""
        self._is_read_elsewhere = is_read
        if is_read and self._timer is not None:
            self._stop_grace()
            self._start_grace()

    def end(self) -> None:
        """Stop the grace for good, because the run has ended."""
        self._grace = None
        self._stop_grace()
        del self._cancel  # it refers to the run, which refers to this object

    def count(self) -> int:
        return self.local + self._is_read_elsewhere

    def is_abandoned(self) -> bool:
        """Return True if the run had a reader in this process and has none on any replica now."""
        return self._timer is not None and not self.count()

    def _start_grace(self) -> None:
        if self._grace is None:
            return
        if self._grace == 0:
            self._cancel(CancelReason.DISCONNECT)
        else:
            self._timer = self._clock.call_later(self._grace, partial(self._cancel, CancelReason.DISCONNECT))

    def _stop_grace(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
