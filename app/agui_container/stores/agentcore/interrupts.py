"""Pending interrupts in memory and in AgentCore Memory, beside the messages of their thread.

Rules:
- One process at a time has a session, as AgentCore guarantees, so the process's memory decides between answers. An
  answer is written to the service before it counts. A process that dies while the call runs therefore leaves a claimed
  call, and the next process does not run it again.
- A question that cannot be written stays in memory, because an outage of the service never fails a run. The client gets
  a warning with the thread's next run.
"""

import asyncio
import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from msgspec.structs import replace

from agui_container.ports.records import InterruptScope, PendingInterrupt, StoreWarning
from agui_container.ports.store import StoreUnavailable
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.memory_interrupts import MemoryInterrupts
from agui_container.stores.agentcore.histories import TICK, ThreadHistories
from agui_container.stores.agentcore.interrupt_events import dump_interrupts, make_interrupt_parts
from agui_container.stores.agentcore.service import MemoryService, digest

UNWRITTEN = StoreWarning(
    "interrupt.unwritten", "The question of the last run could not be stored. It is lost if this process ends."
)

logger = logging.getLogger(__name__)


class AgentCoreInterrupts:
    """``InterruptStore`` in memory, whose writes go to the service as well.

    Args:
        memory: interrupts in memory.
        histories: reads the threads, and their interrupts, from the service.
        service: AgentCore Memory.
        now: returns the time in Unix seconds.
    """

    def __init__(
        self,
        memory: MemoryInterrupts,
        histories: ThreadHistories,
        service: MemoryService,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._memory = memory
        self._histories = histories
        self._service = service
        self._now = now
        self._last_at = 0.0
        self._locks: WeakValueDictionary[InterruptScope, asyncio.Lock] = WeakValueDictionary()
        self._expired_at = -math.inf

    async def put(self, scope: InterruptScope, interrupts: Sequence[PendingInterrupt]) -> None:
        """Store interrupts. A question that cannot be written becomes a warning; a result raises, to be repeated."""
        if not interrupts:
            return
        async with self._lock(scope):
            await self._memory.put(scope, interrupts)
            try:
                await self._write(scope, interrupts)
            except StoreUnavailable as error:
                if any(each.is_settled for each in interrupts):
                    raise
                fields = {"thread": scope.thread_id, "error": error}
                logger.warning("interrupt not written to AgentCore Memory %s", format_fields(fields))
                self._histories.warn(scope.thread, UNWRITTEN)

    async def list_open(self, scope: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        """List the interrupts that have not expired. A thread that is not in memory is read first."""
        await self._histories.load_if_absent(scope.thread)
        return await self._memory.list_open(scope, max(now, self._expired_at))

    async def expire(self, now: float) -> None:
        """Remove the interrupts that have expired. The service keeps them, and they are no longer listed."""
        self._expired_at = max(now, self._expired_at)
        await self._memory.expire(now)

    async def settle(self, scope: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        """Settle an interrupt that is open and has not expired, once the service has the answer.

        Raises:
            StoreUnavailable: the answer could not be written, and the interrupt is still open.
        """
        async with self._lock(scope):
            found = next((each for each in await self._memory.list_open(scope, now) if each.id == id), None)
            if found is None or found.is_settled:
                return False
            await self._write(scope, [replace(found, payload=payload, until=until, is_settled=True)])
            return await self._memory.settle(scope, id, payload, until, now)

    async def _write(self, scope: InterruptScope, interrupts: Sequence[PendingInterrupt]) -> None:
        at = self._last_at = max(self._now(), self._last_at + TICK)
        name = digest(json.dumps([*scope, at, dump_interrupts(scope, interrupts)]))
        await self._service.write_parts(scope.thread, at, make_interrupt_parts(name, scope, interrupts, at))

    def _lock(self, scope: InterruptScope) -> asyncio.Lock:
        return self._locks.setdefault(scope, asyncio.Lock())
