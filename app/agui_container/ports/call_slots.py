"""Bound on the tool calls that are at work in one run, calls of its subagents included.

Rule: the bound holds at any depth and cannot deadlock. It works like the job server of ``make``: a subagent owns the
slot of the call that it works for, and lends that slot to one call of its own while it waits for the results. Each
further call at the same time needs a free slot of the run. So every agent that waits can go on with one call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

MAX_CALLS_AT_WORK = 16
"""Tool calls of one run at the same time, those of its subagents included."""


class CallSlots:
    """Slots for the calls of one run.

    Args:
        limit: calls at the same time, at least 1. The agent that calls waits meanwhile, so its own slot is one of them.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, limit: int = MAX_CALLS_AT_WORK) -> None:
        self._free = limit - 1
        self._waiting: list[_CallGroup] = []

    async def run(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """Run the calls of one agent as slots become free, in order, and return their results in that order.

        A call that waits for a slot has no task. Cancellation ends the calls at work and drops the waiting ones.

        Raises:
            BaseExceptionGroup: a call raised. The others of this agent were cancelled.
        """
        if not calls:
            return []
        results: dict[int, T] = {}

        async def call(index: int) -> None:
            results[index] = await calls[index]()

        async with asyncio.TaskGroup() as tasks:
            group = _CallGroup(len(calls), call, tasks, self)
            try:
                group.start_next()
                self._enqueue(group)
                await group.all_started
            finally:
                if group in self._waiting:
                    self._waiting.remove(group)
        return [results[index] for index in range(len(calls))]

    def release(self) -> None:
        """Take a slot back from a call that has ended."""
        self._free += 1
        self._start_waiting()

    def _enqueue(self, group: "_CallGroup") -> None:
        self._waiting.append(group)
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Start calls in free slots, one of each waiting group in turn."""
        while self._free and self._waiting:
            group = self._waiting.pop(0)
            if group.has_waiting:
                self._free -= 1
                group.start_next()
                self._waiting.append(group)


class _CallGroup:
    """Calls of one agent that waits for them. One of them at a time uses the slot of that agent."""

    def __init__(
        self,
        count: int,
        call: Callable[[int], Coroutine[object, object, None]],
        tasks: asyncio.TaskGroup,
        slots: CallSlots,
    ) -> None:
        self.all_started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count = count
        self._call = call
        self._tasks = tasks
        self._slots = slots
        self._context = copy_context()  # a call that another one's end starts has this agent's context all the same
        self._started = 0
        self._at_work = 0

    @property
    def has_waiting(self) -> bool:
        """True while calls wait for a slot."""
        return self._started < self._count and not self.all_started.done()

    def start_next(self) -> None:
        """Start the first call that waits."""
        task = self._tasks.create_task(self._call(self._started), context=self._context.copy())
        task.add_done_callback(self._end)
        self._started += 1
        self._at_work += 1
        if self._started == self._count:
            self.all_started.set_result(None)

    def _end(self, task: asyncio.Task[None]) -> None:
        """Pass the slot on. In a callback: a task that is cancelled before its first step runs no code of its own."""
        if task.cancelled() or task.exception():
            self.all_started.cancel()
        self._at_work -= 1
        if self._at_work:
            self._slots.release()
        elif self.has_waiting:
            self.start_next()
