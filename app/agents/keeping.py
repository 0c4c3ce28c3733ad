"""What is asked of a store by those who answer runs.

Rule: a store that cannot answer ends what needs its answer with STORE_UNAVAILABLE; what has happened is not lost on
the way to the store because its run is cancelled meanwhile; and a cancelled run waits for no store.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager

from app.core.errors import AppError, Code
from app.ports import RunContext
from app.ports.store import StoreUnavailable

Where = tuple[str, str, str]
"""Owner, the client's thread id, and the part of that thread, as in ``Place``."""


def where(ctx: RunContext) -> Where:
    """Where an agent works. What is kept there goes with the client's thread."""
    owner = ctx.caller.owner
    return (owner, ctx.thread_id, "") if ctx.part_of is None else (owner, ctx.part_of, ctx.thread_id)


@contextmanager
def available() -> Iterator[None]:
    """Raises ``AppError`` STORE_UNAVAILABLE for a store that does not answer."""
    try:
        yield
    except StoreUnavailable as error:
        raise AppError(Code.STORE_UNAVAILABLE, "What this server keeps cannot be reached right now.") from error


async def outlasting(work: Coroutine[object, object, None], ctx: RunContext) -> None:
    """Wait for work that a cancellation of the run must not stop; then the process owns it, and the run goes."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        ctx.background(task)
        raise
