"""Signals: Ctrl-C ends what is awaited and not the program, and the end of the terminal ends a command in order.

Rules:

- Handlers of Ctrl-C nest. They are Python's own and not those of the event loop, because a prompt of prompt_toolkit
  restores only the former.
- SIGTERM and SIGHUP cancel a command, so that an agent that it serves ends with it, and the terminal is left in order.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a command. Windows has no SIGHUP."""


def run_command(work: Coroutine[object, object, T]) -> T:
    """Run a command on an event loop. Raises ``SystemExit`` with the shell's status for a signal that ends it."""
    received: list[int] = []

    async def run() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end(number: int, _: object) -> None:
            received.append(number)
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        for number in ENDINGS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                signal.signal(number, end)
        return await work

    try:
        result = asyncio.run(run())
    except asyncio.CancelledError:
        if not received:
            raise
    else:
        if not received:
            return result
    raise SystemExit(128 + received[0])


@contextmanager
def ctrl_c_calls(handler: Callable[[], object]) -> Iterator[None]:
    """Call a function in the event loop at each Ctrl-C."""
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(handler))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def ended_by_ctrl_c(work: Coroutine[object, object, T]) -> T:
    """Await something that Ctrl-C ends. Raises ``KeyboardInterrupt`` then."""
    task = asyncio.create_task(work)
    with ctrl_c_calls(task.cancel):
        try:
            return await task
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise KeyboardInterrupt from None


def is_cancelled() -> bool:
    """Return True if the current task itself is cancelled, and not only something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
