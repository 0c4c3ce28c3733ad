"""Resources in use and start rates of each caller.

Rule: a caller may use half of what all may use, unless ``AGUI_CALLER_LIMITS`` says otherwise. So a second caller is
served during any load by the first one. A caller without anything to count is forgotten.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from msgspec import Struct

from agui_container.engine.log.event_log import LogBudget
from agui_container.engine.policy import CallerLimits, CapacityLimits, limit_error
from agui_container.ports import Clock
from agui_container.protocol.errors import AppError
from agui_container.runtime.token_bucket import TokenBucket
from agui_container.telemetry import RefusalLog

MINUTE = 60.0

MIN_SWEEP = 1_000
"""Number of callers from which on those without anything to count are forgotten."""


class Resource(StrEnum):
    """Things that are open for a while, by their names in ``AGUI_CALLER_LIMITS``."""

    RUNS = "runs"
    REQUEST_BYTES = "requestBytes"
    STREAMS = "streams"
    SOCKETS = "sockets"
    BACKGROUND_TASKS = "backgroundTasks"


NOUNS = {
    Resource.RUNS: "open runs",
    Resource.REQUEST_BYTES: "bytes of requests of open runs",
    Resource.STREAMS: "open streams",
    Resource.SOCKETS: "open sockets",
    Resource.BACKGROUND_TASKS: "background tasks",
}


class ReachedLimit(Struct, frozen=True):
    """A limit that leaves no room. ``is_callers`` is True for the limit of one caller, False for the process's."""

    resource: Resource
    limit: int
    is_callers: bool

    def error(self) -> AppError:
        """Return the error for the caller."""
        return limit_error(self.resource, NOUNS[self.resource], self.limit, is_callers=self.is_callers)


class FreedAmounts(Struct):
    """Amounts that will be freed before the next one is taken: by the caller, and by all callers."""

    own: int = 0
    all: int = 0


NOTHING_FREED = FreedAmounts()


class CallerUsage:
    """Resources in use by one caller.

    Args:
        account: name of the caller.
        limits: limits of the caller.
        usages: use by all callers.
    """

    __slots__ = ("_limits", "_message_rate", "_run_rate", "_usages", "_used", "account", "logs")

    def __init__(self, account: str, limits: CallerLimits, usages: "CallerUsages") -> None:
        self.account = account
        self.logs = LogBudget(usages.logs.run_bytes, limits.log_bytes, usages.logs)
        self._limits = limits
        self._usages = usages
        self._used = dict.fromkeys(Resource, 0)
        self._run_rate = TokenBucket(limits.runs_per_minute / MINUTE, limits.runs_per_minute, usages.now)
        self._message_rate = TokenBucket(limits.messages_per_second, limits.messages_per_second, usages.now)

    # --- resources in use ---

    def reached_limit(
        self, resource: Resource, amount: int = 1, freed: FreedAmounts = NOTHING_FREED
    ) -> ReachedLimit | None:
        """Return the limit that leaves no room for ``amount`` more once ``freed`` is free, or None.

        Bytes of a request above the limit are accepted while there are no others.
        """
        used, limit = self._used[resource] - freed.own, self._usages.of_caller[resource]
        if used and used + amount > limit:
            return ReachedLimit(resource, limit, is_callers=True)
        used, limit = self._usages.used[resource] - freed.all, self._usages.of_process[resource]
        if used and used + amount > limit:
            return ReachedLimit(resource, limit, is_callers=False)
        return None

    def check(self, resource: Resource) -> None:
        """Check that there is room for one more. Raises ``AppError`` RATE_LIMIT_EXCEEDED."""
        if (reached := self.reached_limit(resource)) is not None:
            raise self.refusal(reached)

    def refusal(self, reached: ReachedLimit) -> AppError:
        """Return the error for a limit that is reached, and log it now and then."""
        self._usages.refusal_log.report(reached.resource, self.account)
        return reached.error()

    def add(self, resource: Resource, amount: int = 1) -> None:
        """Count an amount as in use. A negative amount is freed."""
        self._used[resource] += amount
        self._usages.used[resource] += amount

    @contextmanager
    def use(self, resource: Resource) -> Iterator[None]:
        """Count one more until the end of the block. Raises ``AppError`` RATE_LIMIT_EXCEEDED."""
        self.check(resource)
        self.add(resource)
        try:
            yield
        finally:
            self.add(resource, -1)

    # --- rates ---

    def count_run(self) -> None:
        """Count the beginning of a run. Raises ``AppError`` RATE_LIMIT_EXCEEDED with the seconds to wait."""
        limit = self._limits.runs_per_minute
        self._count(self._run_rate, "runsPerMinute", "runs in a minute", limit)

    def count_message(self) -> None:
        """Count a message of a client. Raises ``AppError`` RATE_LIMIT_EXCEEDED with the seconds to wait."""
        limit = self._limits.messages_per_second
        self._count(self._message_rate, "messagesPerSecond", "messages in a second", limit)

    def _count(self, rate: TokenBucket, name: str, noun: str, limit: int) -> None:
        if (delay := rate.delay()) > 0:
            self._usages.refusal_log.report(name, self.account)
            raise limit_error(name, noun, limit, is_callers=True, wait_seconds=delay)

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to count."""
        is_in_use = any(self._used.values()) or self.logs.used_bytes
        return not is_in_use and self._run_rate.is_full and self._message_rate.is_full


class CallerUsages:
    """Resources of a process in use, by caller.

    Args:
        limits: limits of the process.
        caller_limits: limits of each caller.
        clock: the time.

    Attributes:
        used: use by all callers together.
        of_process, of_caller: limits of the process and of one caller.
        logs: budget of the events of all runs.
        now: returns the time in seconds.
        refusal_log: log of the limits that callers have reached.
    """

    def __init__(self, limits: CapacityLimits, caller_limits: CallerLimits, clock: Clock) -> None:
        self.used = dict.fromkeys(Resource, 0)
        self.of_process: Mapping[Resource, int] = {
            Resource.RUNS: limits.open_runs,
            Resource.REQUEST_BYTES: limits.open_bytes,
            Resource.STREAMS: limits.open_streams,
            Resource.SOCKETS: limits.open_sockets,
            Resource.BACKGROUND_TASKS: limits.background_tasks,
        }
        self.of_caller: Mapping[Resource, int] = {
            Resource.RUNS: caller_limits.runs,
            Resource.REQUEST_BYTES: caller_limits.request_bytes,
            Resource.STREAMS: caller_limits.streams,
            Resource.SOCKETS: caller_limits.sockets,
            Resource.BACKGROUND_TASKS: caller_limits.background_tasks,
        }
        self.logs = LogBudget(limits.run_bytes, limits.all_bytes)
        self.now = clock.time
        self.refusal_log = RefusalLog(clock.time)
        self._caller_limits = caller_limits
        self._usages: dict[str, CallerUsage] = {}
        self._sweep_at = MIN_SWEEP

    def __len__(self) -> int:
        return len(self._usages)

    def of(self, account: str) -> CallerUsage:
        """Return the use by one caller, known or new."""
        usage = self._usages.get(account)
        if usage is None:
            if len(self._usages) >= self._sweep_at:
                self._sweep()
            usage = self._usages[account] = CallerUsage(account, self._caller_limits, self)
        return usage

    def _sweep(self) -> None:
        """Forget callers without anything to count. The next sweep is when there are twice as many as now."""
        self._usages = {account: usage for account, usage in self._usages.items() if not usage.is_idle}
        self._sweep_at = max(MIN_SWEEP, 2 * len(self._usages))

    def use(self) -> dict[str, int]:
        """Return the amounts in use by the whole process, by the names of their limits."""
        return {**{resource.value: used for resource, used in self.used.items()}, "logBytes": self.logs.used_bytes}
