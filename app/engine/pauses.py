"""What is awaited, taken step by step, so that whoever drives it sees where it has to wait.

Rule: whoever resumes what was begun waits for exactly what it waits for. Where that is another task than the one that
began it, nothing in it may be bound to a task, as ``asyncio.timeout`` is.
"""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
V = TypeVar("V")

Step = Generator[object, None, T]
"""What an awaitable's ``__await__`` gives."""


class Rest(Generic[T]):
    """The rest of something that was begun and has to wait; await it once.

    Args:
        step: what was begun.
        waits_for: what it gave when it stopped.
    """

    __slots__ = ("_step", "_waits_for")

    def __init__(self, step: Step[T], waits_for: object) -> None:
        self._step = step
        self._waits_for = waits_for

    def __await__(self) -> Step[T]:
        """Its result. Raises what it raises."""
        step, waits_for = self._step, self._waits_for
        thrown: BaseException | None = None
        try:
            while True:
                thrown = None
                try:
                    yield waits_for
                except BaseException as error:  # noqa: BLE001 - it is the step's to handle, also a cancellation
                    thrown = error
                # Outside the block: the step must not find an exception that somebody handles.
                waits_for = step.send(None) if thrown is None else step.throw(thrown)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            thrown = None  # its traceback keeps this frame, and those of the run around it


class Around(Protocol):
    """Calls what it is given with the one value, as ``Context.run`` does."""

    def __call__(self, step: Callable[[V], object], value: V, /) -> object:
        """What the step gives. Raises what it raises."""


@coroutine
def stepwise(work: Coroutine[object, None, T], around: Around) -> Step[T]:
    """Await work in this task, each step of it with something around: its own context, or who notices that it waits.

    Others may enter that context while this task waits. Raises what the work raises.
    """
    thrown: BaseException | None = None
    try:
        waits_for = around(work.send, None)
        while True:
            thrown = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is the work's to handle, also a cancellation
                thrown = error
            waits_for = around(work.send, None) if thrown is None else around(work.throw, thrown)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        thrown = None  # as above
