"""What is awaited, taken step by step, so that whoever drives it sees where it has to wait.

Rule: whoever resumes what was begun waits for exactly what it waits for. Where that is another task than the one that
began it, nothing in it may be bound to a task, as ``asyncio.timeout`` is.
"""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
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


@coroutine
def stepwise(
    work: Step[T] | Coroutine[object, None, T], around: Around = directly, waits_for: object = BEGINNING
) -> Step[T]:
    """Await work in this task, each step of it with something around: its own context, or who notices that it waits.

    Others may enter that context while this task waits. Raises what the work raises.

    Args:
        work: what is awaited, or what is left of it.
        around: calls each step.
        waits_for: what the work gave when it stopped, where it has been begun.
    """
    thrown: BaseException | None = None
    try:
        while True:
            if waits_for is not BEGINNING:
                thrown = None
                try:
                    yield waits_for
                except BaseException as error:  # noqa: BLE001 - it is the work's to handle, also a cancellation
                    thrown = error
            # Outside of the block: the work must not find an exception that somebody handles.
            waits_for = around(work.send, None) if thrown is None else around(work.throw, thrown)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        thrown = None  # its traceback keeps this frame, and those of the run around it
