"""Adapter from a plain generator to an agent: one daemon thread per run feeds the event loop.

Rules: the whole generator, from its first line to its last ``finally``, runs in one thread. A cancelled run returns at
once, and its thread ends at the next ``yield``. A thread that never reaches a ``yield`` blocks no other run, but it
counts against ``THREADS``. When that many threads are alive, the next run is refused. One caller may use half of them.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from functools import partial
from itertools import takewhile

from ag_ui.core import RunAgentInput
from msgspec import Struct, field

from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.daemon_threads import (
    AccountBusy,
    CannotStartThread,
    DaemonThreadPool,
    ThreadPoolBusy,
    ThreadStream,
)

THREADS = 256
"""Maximum number of live threads per agent."""

CALLER_THREADS = 128
"""Maximum number of live threads per agent and caller."""

Start = Callable[[RunAgentInput, RunContext], Generator[Item, None, None]]


class ThreadAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` with a plain generator function.

    Attributes:
        source: the user's function or object.
        start: opens the user's generator.
        threads: the pool that the runs of this agent share.
    """

    source: object
    start: Start
    threads: DaemonThreadPool = field(default_factory=lambda: DaemonThreadPool(THREADS, CALLER_THREADS))

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield the items that the thread produces.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED, if no thread can be started.
        """
        stream = self._open_stream(input, ctx)
        try:
            while await stream.wait_for_items():
                for item in stream.take_items():
                    yield item
        finally:
            stream.stop()

    def _open_stream(self, request: RunAgentInput, ctx: RunContext) -> ThreadStream[Item]:
        try:
            work = partial(self._run_generator, request, ctx)
            return self.threads.stream(f"run-{ctx.run_id}", work, ctx.caller.account)
        except CannotStartThread as error:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "The server has no thread left. Try again later.") from error
        except AccountBusy as error:
            message = f"You have reached the limit of {self.threads.per_account} threads of agents for one caller."
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, message) from error
        except ThreadPoolBusy as error:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "Too many runs are open at once. Try again later.") from error

    def _run_generator(self, request: RunAgentInput, ctx: RunContext, stream: ThreadStream[Item]) -> None:
        """Run the generator in this thread until it ends or the run is cancelled, then close it."""
        try:
            with closing(self.start(request, ctx)) as items:
                stream.feed(takewhile(lambda _: not ctx.cancelled, items))
        except BaseException:
            if stream.is_stopped:
                ctx.logger.warning("agent failed after its run had ended run=%s", ctx.run_id, exc_info=True)
            raise
