"""A thread for each call that may block the event loop: of a plain function of the program, or of botocore."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a thread of its own. A thread that does not end delays neither its session nor the program's exit.

    ``asyncio.to_thread`` has few threads, and the exit of the program waits for all of them.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            done.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)

    threading.Thread(target=run, name="agui-client-call", daemon=True).start()
    return await asyncio.wrap_future(done)
