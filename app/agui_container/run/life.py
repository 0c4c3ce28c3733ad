"""The life of a run: its phases, the transitions between them, and the answer to the request that it comes from.

Rule: a run exists from the moment of its request. What it becomes is decided in its own task, so a request that leaves,
a cancel and a shutdown treat a run that has not begun like any other.
"""

import asyncio
from collections.abc import Collection, Mapping
from enum import Enum, auto

from agui_container.protocol.errors import AppError
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
