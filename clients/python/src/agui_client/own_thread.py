"""A thread for each call that may block the event loop: of a plain function of the program, or of botocore."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a thread of its own. A thread that does not end delays neither its session nor the program's exit.

    ``asyncio.to_thread`` has few threads, and the exit of the program waits for all of them.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(finish: Callable[[], None]) -> None:
        if not done.done():
            finish()

    def run() -> None:
        try:
            finish = partial(done.set_result, context.run(call))
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            failure = RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
            finish = partial(done.set_exception, failure)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, finish)

    threading.Thread(target=run, name="agui-client-call", daemon=True).start()
    return await done
