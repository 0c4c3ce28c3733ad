"""Store scope of an agent's interrupts, and requests to the store that survive an outage or the end of a run.

Rules: a run waits for a store that does not answer, as the recorder of its events does. Cancelling a run never loses a
write that records what has happened, and a cancelled run does not wait for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from agui_container.ports import RunContext
from agui_container.ports.store import FIRST_PAUSE, GIVE_UP_SECONDS, LONGEST_PAUSE, StoreUnavailable

T = TypeVar("T")

ScopeKey = tuple[str, str, str]
"""Owner, the client's thread id, and the part of that thread, as in ``InterruptScope``."""


def scope_key(ctx: RunContext) -> ScopeKey:
    """Return the scope of the run's agent. Interrupts in it are deleted together with the client's thread."""
    owner = ctx.caller.owner
    return (owner, ctx.thread_id, "") if ctx.part_of is None else (owner, ctx.part_of, ctx.thread_id)


async def shield_from_run_cancel(work: Coroutine[object, object, None], ctx: RunContext) -> None:
    """Await ``work``. If the run is cancelled meanwhile, hand the work to the background tasks of the process."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        ctx.background(task)
        raise


async def wait_for_store(request: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request to the store until the store answers, for ``GIVE_UP_SECONDS``.

    A claim whose first attempt succeeded without an answer fails when it is repeated, so its call is not run.

    Raises:
        StoreUnavailable: the store did not answer in this time.
    """
    pause, deadline = FIRST_PAUSE, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
    while True:
        try:
            return await request()
        except StoreUnavailable:
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
