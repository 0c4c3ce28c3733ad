"""Queues of the open runs, one per thread, and the treatment of a new run on a busy thread.

Rule: the first run of a queue is active, and the others wait in the order in which they came.
"""

from collections.abc import Iterator, Sequence

from agui_container.engine.persistence.recorder import RunAlreadyStored
from agui_container.engine.policy import OnBusy
from agui_container.engine.run.run import Run
from agui_container.ports.records import ThreadKey
from agui_container.protocol.errors import AppError, ErrorCode


class ThreadQueues(dict[ThreadKey, list[Run]]):
    """The queues of all threads with open runs."""

    def of(self, thread: ThreadKey) -> tuple[Run, ...]:
        """Return the open runs of a thread: the active one, then the waiting ones in order."""
        return tuple(self.get(thread, ()))

    def active(self) -> Iterator[Run]:
        """Iterate the active runs of all threads."""
        return (queue[0] for queue in self.values())

    def waiting(self) -> Sequence[Run]:
        """Return the waiting runs of all threads."""
        return [run for queue in self.values() for run in queue[1:]]

    def append(self, run: Run) -> bool:
        """Add a run at the end of its thread's queue. Return True if it is active."""
        queue = self.setdefault(run.key.thread, [])
        queue.append(run)
        return queue[0] is run

    def remove(self, run: Run) -> Run | None:
        """Remove a run. Return the run that is active now, or None if that has not changed or there is none."""
        thread = run.key.thread
        queue = self[thread]
        was_active = queue[0] is run
        queue.remove(run)
        if not queue:
            del self[thread]
            return None
        return queue[0] if was_active else None


def runs_before(queue: Sequence[Run], on_busy: OnBusy, now: float) -> tuple[Sequence[Run], Sequence[str]]:
    """Return the open runs of a thread that are cancelled for a new one, and the ids of those that it waits for.

    Raises:
        AppError: THREAD_BUSY.
    """
    if on_busy is OnBusy.INTERRUPT:
        return queue, ()
    to_cancel = [run for run in queue if run.presence.is_abandoned(now)]
    if on_busy is OnBusy.REJECT and len(to_cancel) < len(queue):
        raise thread_busy()
    return to_cancel, [run.ctx.run_id for run in queue if run not in to_cancel]


def thread_busy() -> AppError:
    """Return the error for a run on a thread that another run occupies."""
    return AppError(ErrorCode.THREAD_BUSY, "Another run is active on this thread.")


async def wait_admitted(run: Run) -> bool:
    """Wait for the admission of a run. Return False if it was refused or is the retry of a stored run."""
    try:
        await run.admission.wait()
    except (RunAlreadyStored, AppError):
        return False
    return True
