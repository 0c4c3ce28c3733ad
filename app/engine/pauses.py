"""What is awaited, taken step by step, so that whoever drives it sees where it has to wait.

Rule: a coroutine that was begun here is driven to its end by one task; between its steps that task waits for exactly
what the coroutine waits for.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Generic, TypeVar

T = TypeVar("T")

Step = Generator[object, None, T]
"""What an awaitable's ``__await__`` gives."""


class Resumed(Generic[T]):
    """The rest of something that was begun and has to wait; await it once.

    Args:
        step: what was begun.
        waits_for: what it gave when it stopped.
    """

    __slots__ = ("_step", "_waits_for")

    def __init__(self, step: Step[T], waits_for: object) -> None:
        self._step = step
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, None, T]:
        """Its result. Raises what it raises."""
        step, waits_for = self._step, self._waits_for
        try:
            while True:
                try:
                    yield waits_for
                except GeneratorExit:
                    step.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the step's to handle, also a cancellation
                    waits_for = step.throw(error)
                else:
                    waits_for = step.send(None)
        except StopIteration as end:
            result: T = end.value
            return result


def begun(work: Coroutine[object, None, T]) -> asyncio.Future[T]:
    """Begin it at once; a task is made for what has to wait. Its result or what it raises is in the future.

    The first step is the caller's, so up to there nothing may be bound to a task, as ``asyncio.timeout`` is.
    """
    step = work.__await__()
    try:
        waits_for = next(step)
    except StopIteration as end:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        done.set_result(end.value)
    except Exception as error:  # noqa: BLE001 - for who asks the future
        done = asyncio.get_running_loop().create_future()
        done.set_exception(error)
    else:
        return asyncio.create_task(_finish(Resumed(step, waits_for)))
    return done


async def _finish(rest: Resumed[T]) -> T:
    return await rest
