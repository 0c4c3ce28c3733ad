"""Where those who answer runs keep something in a store, and how it gets there.

Rule: what has happened is not lost on the way to the store because its run is cancelled meanwhile; and a cancelled run
waits for no store.
"""

import asyncio
from collections.abc import Coroutine

from agui_container.ports import RunContext

ScopeKey = tuple[str, str, str]
"""Owner, the client's thread id, and the part of that thread, as in ``Place``."""


def scope_key(ctx: RunContext) -> ScopeKey:
    """Where an agent works. What is kept there goes with the client's thread."""
    owner = ctx.caller.owner
    return (owner, ctx.thread_id, "") if ctx.part_of is None else (owner, ctx.part_of, ctx.thread_id)


async def shield_from_run_cancel(work: Coroutine[object, object, None], ctx: RunContext) -> None:
    """Wait for work that a cancellation of the run must not stop; then the process owns it, and the run goes."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        ctx.background(task)
        raise
