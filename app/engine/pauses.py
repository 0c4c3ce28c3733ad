"""What is awaited, taken step by step, so that whoever drives it sees where it has to wait.

Rule: whoever resumes what was begun waits for exactly what it waits for. Where that is another task than the one that
began it, nothing in it may be bound to a task, as ``asyncio.timeout`` is.
"""

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Generic, TypeVar

T = TypeVar("T")

Step = Generator[object, None, T]
"""What an awaitable's ``__await__`` gives."""


def _nothing() -> None:
    """Nobody wants to know."""


class Rest(Generic[T]):
    """The rest of something that was begun and has to wait; await it once.

    Args:
        step: what was begun.
        waits_for: what it gave when it stopped.
        pause: called whenever it has to wait.
        resume: called whenever it goes on.
    """

    __slots__ = ("_pause", "_resume", "_step", "_waits_for")

    def __init__(
        self,
        step: Step[T],
        waits_for: object,
        pause: Callable[[], None] = _nothing,
        resume: Callable[[], None] = _nothing,
    ) -> None:
        self._step = step
        self._waits_for = waits_for
        self._pause = pause
        self._resume = resume

    def __await__(self) -> Generator[object, None, T]:
        """Its result. Raises what it raises."""
        step, waits_for, pause, resume = self._step, self._waits_for, self._pause, self._resume
        thrown: BaseException | None = None
        try:
            while True:
                pause()
                thrown = None
                try:
                    yield waits_for
                except GeneratorExit:
                    step.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the step's to handle, also a cancellation
                    thrown = error
                resume()
                # Outside the block: the step must not find an exception that somebody handles.
                waits_for = step.send(None) if thrown is None else step.throw(thrown)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            thrown = None  # its traceback keeps this frame, and those of the run around it


@coroutine
def within(context: Context, work: Coroutine[object, None, T]) -> Generator[object, None, T]:
    """Await work in this task, but in a context of its own, which others may enter while this task waits.

    Raises what the work raises.
    """
    thrown: BaseException | None = None
    try:
        waits_for = context.run(work.send, None)
        while True:
            thrown = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is the work's to handle, also a cancellation
                thrown = error
            waits_for = context.run(work.send, None) if thrown is None else context.run(work.throw, thrown)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        thrown = None  # as above
