"""What is awaited, taken step by step, so that whoever drives it sees where it has to wait.

Rule: whoever resumes what was begun waits for exactly what it waits for. Where that is another task than the one that
began it, nothing in it may be bound to a task, as ``asyncio.timeout`` is.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Protocol, TypeVar

T = TypeVar("T")
V = TypeVar("V")

Step = Generator[object, None, T]
"""What an awaitable's ``__await__`` gives."""

BEGINNING = object()
"""Nothing has been begun yet."""


class Around(Protocol):
    """Calls what it is given with the one value, as ``Context.run`` does."""

    def __call__(self, step: Callable[[V], object], value: V, /) -> object:
        """What the step gives. Raises what it raises."""


def directly(step: Callable[[V], object], value: V, /) -> object:
    """Nothing around a step."""
    try:
        return step(value)
    finally:
        del value  # an exception that is thrown in keeps this frame


class Stepwise(Generator[object, None, T], Coroutine[object, None, T]):
    """Work that goes step by step, each with something around: its own context, or who notices that it waits.

    To be awaited, or a task's own. Others may enter that context while it waits. It is no generator function: a frame
    of its own would be passed through for each token.

    Args:
        work: what is to be done, or what is left of it.
        around: calls each step.
        waits_for: what the work gave when it stopped, where it has been begun.
    """

    __slots__ = ("_around", "_waits_for", "_work")

    def __init__(
        self, work: Step[T] | Coroutine[object, None, T], around: Around = directly, waits_for: object = BEGINNING
    ) -> None:
        self._work = work
        self._around = around
        self._waits_for = waits_for

    def __next__(self) -> object:
        """Go on: what the work waits for next. Raises what it raises. This is what a task and ``await`` call."""
        waits_for = self._waits_for
        if waits_for is BEGINNING:
            return self._around(self._work.send, None)
        self._waits_for = BEGINNING
        return waits_for

    def send(self, _: None, /) -> object:
        """The same, for who calls it by the name that coroutines have."""
        return self.__next__()

    def throw(self, error: BaseException, /, *_: object) -> object:  # type: ignore[override] # all that is thrown today
        """Go on with what was thrown, such as a cancellation."""
        self._waits_for = BEGINNING
        try:
            return self._around(self._work.throw, error)
        finally:
            del error  # it keeps this frame

    def close(self) -> None:
        """Leave the work where it is."""
        self._work.close()

    def __await__(self) -> Step[T]:
        return self


def begun(work: Coroutine[object, None, T]) -> Stepwise[T] | None:
    """Do what needs no waiting; what is left of it, for a task. Raises what it raises."""
    try:
        return Stepwise(work, waits_for=work.send(None))
    except StopIteration:
        return None
