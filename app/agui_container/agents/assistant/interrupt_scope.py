"""Store scope of an agent's interrupts, and store writes that survive the cancellation of a run.

Rule: cancelling a run never loses a write that records what has happened, and a cancelled run does not wait for it.
"""

import asyncio
from collections.abc import Coroutine

from agui_container.ports import RunContext

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
