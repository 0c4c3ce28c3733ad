"""The end of the process in time, whatever hangs in it.

Rule: from the first signal to the exit there is one deadline for everything: runs, readers, connections, the store, and
the agent's parts. Each wait of a shutdown ends early if there is nothing to wait for. What is left at the deadline is
abandoned, because Docker and others kill the process shortly after.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable

from agui_container.log_values import format_fields

SHUTDOWN_SECONDS = 7.5
"""Seconds from the first signal to the exit. Docker kills after ten."""

EXIT_SECONDS = 0.8
"""Seconds for Python to end after everything is closed. A thread of an agent may hold it up."""

logger = logging.getLogger(__name__)


class ExitDeadline:
    """The deadline of one process. Nothing happens before ``begin``."""

    def __init__(self) -> None:
        self._ends_at: float | None = None

    @property
    def remaining(self) -> float:
        return SHUTDOWN_SECONDS if self._ends_at is None else max(0.0, self._ends_at - time.monotonic())

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Exit at the deadline, even if the event loop does not run. Does nothing when called again."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + SHUTDOWN_SECONDS
            exit_after(SHUTDOWN_SECONDS, lambda: asyncio.all_tasks(loop))

    def finish(self) -> None:
        """Exit soon, because everything is closed except the current tasks."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        exit_after(min(EXIT_SECONDS, self.remaining), lambda: tasks)


def exit_after(seconds: float, list_tasks: Callable[[], Iterable[asyncio.Task[object] | None]]) -> None:
    """End the process if it does not end by itself, and log the tasks that are still running in it."""

    def force_exit() -> None:
        names = sorted(task.get_name() for task in list_tasks() if task is not None and not task.done())
        if names:
            fields = {"count": len(names), "names": ", ".join(names)}
            logger.error("shutdown: abandoned tasks still running %s", format_fields(fields))
        else:
            logger.error("shutdown: abandoned threads still running")
        logging.shutdown()
        os._exit(0)

    timer = threading.Timer(seconds, force_exit)
    timer.daemon = True
    timer.start()
