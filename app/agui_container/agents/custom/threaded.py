"""A plain generator as an agent: one daemon thread per run feeds the event loop.

Rules: the whole generator, from its first line to its last ``finally``, runs in one thread. A cancelled run returns at
once; its thread leaves at the next ``yield``. A thread that never gets there holds up nobody, but it counts: with
``THREADS`` of them alive the next run is refused.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from functools import partial
from itertools import takewhile

from ag_ui.core import RunAgentInput
from msgspec import Struct, field

from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.daemon_threads import CannotStartThread, DaemonThreadPool, ThreadPoolBusy, ThreadStream

THREADS = 256

Start = Callable[[RunAgentInput, RunContext], Generator[Item, None, None]]


class ThreadAgent(Struct, frozen=True):
    """Implements ``ports.Agent`` with ``start``, which opens the user's generator. ``source`` is what the user gave."""

    source: object
    start: Start
    threads: DaemonThreadPool = field(default_factory=lambda: DaemonThreadPool(THREADS))

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield what the thread hands over."""
        stream = self._begun(input, ctx)
        try:
            while await stream.wait_for_items():
                for item in stream.take_items():
                    yield item
        finally:
            stream.stop()

    def _begun(self, request: RunAgentInput, ctx: RunContext) -> ThreadStream[Item]:
        try:
            return self.threads.stream(f"run-{ctx.run_id}", partial(self._work, request, ctx))
        except CannotStartThread as error:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "The server has no thread left. Try again later.") from error
        except ThreadPoolBusy as error:
            raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "Too many runs are open at once. Try again later.") from error

    def _work(self, request: RunAgentInput, ctx: RunContext, stream: ThreadStream[Item]) -> None:
        """The thread: run the generator until it ends or nobody wants more, then close it here."""
        try:
            with closing(self.start(request, ctx)) as items:
                stream.feed(takewhile(lambda _: not ctx.cancelled, items))
        except BaseException:
            if stream.is_stopped:
                ctx.logger.warning("run=<%s> | the agent failed after its run had ended", ctx.run_id, exc_info=True)
            raise
