"""Rules and limits of the tool calls of one run, also of those of its subagents, and what its client offers.

Rule: what a run's caller or the operator demands of tool calls holds at any depth.

Rule: the limit of concurrent calls applies at any depth and cannot deadlock. It works like the job server of ``make``.
A subagent owns the slot of the call that it executes, and one of its own calls uses that slot while the subagent waits.
Each further concurrent call needs a free slot of the run. Every waiting agent can therefore always execute one call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from enum import StrEnum
from typing import TypeVar

from ag_ui.core import Context, Tool
from msgspec import Struct


class Permission(StrEnum):
    """Permission to execute a tool: always, after a person's approval, or never."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


STRICTNESS = (Permission.ALLOW, Permission.ASK, Permission.DENY)
"""Permissions, the most lenient first."""


class PolicyDecision(Struct, frozen=True):
    """A permission and its reason. ``category`` is a group of tools that people see, such as ``physical``."""

    permission: Permission
    reason: str | None = None
    category: str | None = None


Policy = Callable[[str], PolicyDecision]
"""Function from the name of a tool to the decision on it."""


def allow_all(_tool_name: str) -> PolicyDecision:
    """Allow every tool. This is the policy if the operator sets no rules."""
    return PolicyDecision(Permission.ALLOW)


class CallRules(Struct, frozen=True):
    """Rules for the tool calls of a run.

    Attributes:
        policies: policies of the assistants that the run has passed through. The strictest decision counts.
        asks_always: True if every call that the server answers needs an approval, also one that cannot run.
        cancels_on_denial: True if a denied call ends the run as cancelled.
    """

    policies: tuple[Policy, ...] = ()
    asks_always: bool = False
    cancels_on_denial: bool = False

    def with_policy(self, policy: Policy) -> "CallRules":
        """Return the rules with one more policy, or the same rules if it adds nothing."""
        if policy is allow_all or policy in self.policies:
            return self
        return CallRules((*self.policies, policy), self.asks_always, self.cancels_on_denial)

    def with_demands(self, *, asks_always: bool, cancels_on_denial: bool) -> "CallRules":
        """Return the rules with the demands of a caller, or the same rules if there are none."""
        if not (asks_always or cancels_on_denial):
            return self
        return CallRules(self.policies, self.asks_always or asks_always, self.cancels_on_denial or cancels_on_denial)

    def decide(self, tool_name: str) -> PolicyDecision:
        """Return the strictest decision of the policies; of equally strict ones, the last, which is the nearest."""
        decisions = [policy(tool_name) for policy in reversed(self.policies)]
        return max(decisions, key=lambda it: STRICTNESS.index(it.permission), default=allow_all(tool_name))


class ClientOffer(Struct):
    """The client's tools and context, if they have changed since the input of the run.

    Attributes:
        latest: tools and context for the next model call; None once the agent has taken them.
    """

    latest: tuple[Sequence[Tool], Sequence[Context]] | None = None

    def take(self) -> tuple[Sequence[Tool], Sequence[Context]] | None:
        latest, self.latest = self.latest, None
        return latest


T = TypeVar("T")

MAX_CALLS_AT_WORK = 16
"""Maximum number of concurrent tool calls of one run, including calls of its subagents."""


class CallSlots:
    """Slots for the calls of one run.

    Args:
        limit: number of concurrent calls, at least 1. The run's own agent owns one of the slots.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, limit: int = MAX_CALLS_AT_WORK) -> None:
        self._free = limit - 1
        self._waiting: list[_CallGroup] = []

    async def run(self, calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """Run the calls of one agent as slots become free, in order, and return their results in that order.

        A call that waits for a slot has no task. Cancellation ends the running calls and drops the waiting ones.

        Raises:
            BaseExceptionGroup: a call raised. The agent's other calls were cancelled.
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
        """Return the slot of a finished call, and start the next waiting call."""
        self._free += 1
        self._start_waiting()

    def _enqueue(self, group: "_CallGroup") -> None:
        self._waiting.append(group)
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Start waiting calls while slots are free, one call of each group in turn."""
        while self._free and self._waiting:
            group = self._waiting.pop(0)
            if group.has_waiting:
                self._free -= 1
                group.start_next()
                self._waiting.append(group)


class _CallGroup:
    """Calls of one agent, which waits for their results. One call at a time uses the slot of that agent."""

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
        self._context = copy_context()  # a call may be started by the end of another agent's call
        self._started_count = 0
        self._running_count = 0

    @property
    def has_waiting(self) -> bool:
        """True while calls wait for a slot."""
        return self._started_count < self._count and not self.all_started.done()

    def start_next(self) -> None:
        """Start the first waiting call."""
        task = self._tasks.create_task(self._call(self._started_count), context=self._context.copy())
        task.add_done_callback(self._pass_slot_on)
        self._started_count += 1
        self._running_count += 1
        if self._started_count == self._count:
            self.all_started.set_result(None)

    def _pass_slot_on(self, task: asyncio.Task[None]) -> None:
        """Give the slot of a finished call to the next one.

        This is a done callback, because a task that is cancelled before its first step does not run its own code.
        """
        if task.cancelled() or task.exception():
            self.all_started.cancel()
        self._running_count -= 1
        if self._running_count:
            self._slots.release()
        elif self.has_waiting:
            self.start_next()
