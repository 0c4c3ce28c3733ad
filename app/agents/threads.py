"""A plain generator as an agent: one daemon thread per run feeds the event loop.

Rules: the whole generator, from its first line to its last ``finally``, runs in one thread. At most ``ROOM`` items wait
for the loop. A cancelled run returns at once; its thread leaves at the next ``yield``. A thread that never gets there
holds up nobody, not even the exit of the process (that is why it is not one of anyio's threads, which are not
daemons), but it counts: with ``THREADS`` of them alive the next run is refused.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import copy_context
from dataclasses import dataclass, field

from ag_ui.core import RunAgentInput

from app.core.errors import AppError, Code
from app.ports import Item, RunContext

ROOM = 256
THREADS = 256

Start = Callable[[RunAgentInput, RunContext], Generator[Item, None, None]]


@dataclass(frozen=True, slots=True)
class ThreadAgent:
    """Implements ``ports.Agent`` with ``start``, which opens the user's generator. ``source`` is what the user gave."""

    source: object
    start: Start
    threads: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(THREADS))

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Yield what the thread hands over."""
        handover = _Handover(asyncio.get_running_loop())
        self._begin(input, ctx, handover)
        try:
            while True:
                for item in handover.taken():
                    if isinstance(item, _End):
                        item.check()
                        return
                    yield item
                await handover.filled.wait()
        finally:
            handover.stop()

    def _begin(self, request: RunAgentInput, ctx: RunContext, handover: "_Handover") -> None:
        if not self.threads.acquire(blocking=False):
            raise AppError(Code.RATE_LIMIT_EXCEEDED, "Too many runs are open at once. Try again later.")
        context = copy_context()
        thread = threading.Thread(
            target=lambda: context.run(self._work, request, ctx, handover), name=f"run-{ctx.run_id}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            self.threads.release()
            raise AppError(Code.RATE_LIMIT_EXCEEDED, "The server has no thread left. Try again later.") from error

    def _work(self, request: RunAgentInput, ctx: RunContext, handover: "_Handover") -> None:
        """The thread: run the generator until it ends or nobody wants more, then close it here."""
        failure: BaseException | None = None
        try:
            with contextlib.closing(self.start(request, ctx)) as items:
                for item in items:
                    if ctx.cancelled or not handover.put(item):
                        break
        except BaseException as error:  # noqa: BLE001 - carried to the loop, see _End
            failure = error
        self.threads.release()
        if failure is not None and handover.stopped:
            ctx.logger.warning("run=<%s> | the agent failed after its run had ended", ctx.run_id, exc_info=failure)
        handover.end(_End(failure))


@dataclass(frozen=True, slots=True)
class _End:
    """The last thing a thread hands over."""

    failure: BaseException | None

    def check(self) -> None:
        """Raise in the loop what was raised in the thread; ``sys.exit()`` there must not end the server."""
        if isinstance(self.failure, Exception):
            raise self.failure
        if self.failure is not None:
            raise RuntimeError(f"the agent raised {type(self.failure).__name__}") from self.failure


class _Handover:
    """Items on their way from one thread to one coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.filled = asyncio.Event()
        self.stopped = False
        self._loop = loop
        self._items: deque[Item | _End] = deque()
        self._room = threading.Semaphore(ROOM)

    def put(self, item: Item) -> bool:
        """In the thread: hand over an item, waiting for room; False when nobody takes it any more."""
        self._room.acquire()
        if self.stopped:
            return False
        self._add(item)
        return True

    def end(self, end: _End) -> None:
        """In the thread: hand over the end; there is always room for it."""
        self._add(end)

    def taken(self) -> Generator[Item | _End, None, None]:
        """In the loop: what is there, oldest first."""
        # Cleared before looking: an item added from here on sets it again, so none is slept through.
        self.filled.clear()
        while self._items:
            self._room.release()
            yield self._items.popleft()

    def stop(self) -> None:
        """In the loop: take no more, and let a thread that waits for room go."""
        self.stopped = True
        self._room.release()

    def _add(self, item: Item | _End) -> None:
        self._items.append(item)
        if not self.filled.is_set():
            # The loop may be closed when an abandoned thread ends at last: nobody waits for it then.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.filled.set)
