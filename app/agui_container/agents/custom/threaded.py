"""Adapter from a plain generator to an agent: one daemon thread per run feeds the event loop.

Rules: the whole generator, from its first line to its last ``finally``, runs in one thread. A cancelled run returns at
once, and its thread ends at the next ``yield``. A thread that never reaches a ``yield`` blocks no other run, but it
counts against ``THREADS``. When that many threads are alive, the next run is refused.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import closing
from functools import partial

from ag_ui.core import RunAgentInput
from msgspec import Struct, field

from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.daemon_threads import CannotStartThread, DaemonThreadPool, ThreadPoolBusy, ThreadStream
from agui_container.runtime.user_code import CodePosition, suspended_at, user_exc_info

THREADS = 256
"""Maximum number of live threads per agent."""

Start = Callable[[RunAgentInput, RunContext], Generator[Item, None, None]]

YieldedItem = tuple[Item, CodePosition | None]
"""An item, and the position of the ``yield`` that it comes from."""


class ThreadAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` with a plain generator function.

    Attributes:
        source: the user's function or object.
        start: opens the user's generator.
        threads: the pool that the runs of this agent share.
    """

    source: object
    start: Start
    threads: DaemonThreadPool = field(default_factory=lambda: DaemonThreadPool(THREADS))

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield the items that the thread produces.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED, if no thread can be started.
        """
        stream = self._open_stream(input, ctx)
        try:
            while await stream.wait_for_items():
                for item, _position in stream.take_items():  # the log finds the position (see ``suspended_at``)
                    yield item
        finally:
            stream.stop()

    def _open_stream(self, request: RunAgentInput, ctx: RunContext) -> ThreadStream[YieldedItem]:
        try:
            return self.threads.stream(f"run-{ctx.run_id}", partial(self._run_generator, request, ctx))
        except CannotStartThread as error:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "The server has no thread left. Try again later.") from error
        except ThreadPoolBusy as error:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "Too many runs are open at once. Try again later.") from error

    def _run_generator(self, request: RunAgentInput, ctx: RunContext, stream: ThreadStream[YieldedItem]) -> None:
        """Run the generator in this thread until it ends or the run is cancelled, then close it."""
        try:
            with closing(self.start(request, ctx)) as items:
                stream.feed(_with_positions(items, ctx))
        except BaseException as error:
            if stream.is_stopped:
                exc_info = user_exc_info(error)
                ctx.logger.warning("agent failed after its run had ended run=%s", ctx.run_id, exc_info=exc_info)
            raise


def _with_positions(items: Generator[Item, None, None], ctx: RunContext) -> Iterator[YieldedItem]:
    """Yield the items of a generator and their positions, until its end or the end of the run."""
    for item in items:
        if ctx.cancelled:
            return
        yield item, suspended_at(items)
