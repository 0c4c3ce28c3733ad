"""Sampler of a measured server, which Python imports at the start of a process that has this folder in ``PYTHONPATH``.

SIGUSR1 starts it. From then on it notes where the main thread is after each tick of the process's CPU time. SIGUSR2
ends it, and writes the files of the stacks, the innermost first, with their counts to the file ``SAMPLES``.

Rule: it imports nothing of this repository, so that it runs inside every contestant.
"""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from types import FrameType

TICK_SECONDS = 0.001
"""Shortest time between two samples. Most kernels make it 4 or 10 ms."""

stacks: Counter[tuple[str, ...]] = Counter()


def sample(_signal: int, frame: FrameType | None) -> None:
    """Count the files of the current stack."""
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    stacks[tuple(files)] += 1


def begin(_signal: int, _frame: FrameType | None) -> None:
    """Forget the samples of the start."""
    stacks.clear()
    signal.setitimer(signal.ITIMER_PROF, TICK_SECONDS, TICK_SECONDS)


def end(_signal: int, _frame: FrameType | None) -> None:
    """Write the file at once, so that a reader never sees half of it."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    path = Path(os.environ["SAMPLES"])
    part = path.with_suffix(".part")
    part.write_text(json.dumps(list(stacks.items())), encoding="utf-8")
    part.replace(path)


signal.signal(signal.SIGPROF, sample)
signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGUSR2, end)
