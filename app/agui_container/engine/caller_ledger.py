"""Resources in use and start rates of each caller.

Rule: a caller may use half of what all may use, unless ``AGUI_CALLER_LIMITS`` says otherwise. So a second caller is
served whatever the first one does. A ledger is kept while it has something to count.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from msgspec import Struct

from agui_container.engine.limit_errors import limit_error
from agui_container.engine.log.event_log import LogBudget
from agui_container.engine.policy import CallerLimits, CapacityLimits
from agui_container.ports import Clock
from agui_container.protocol.errors import AppError
from agui_container.runtime.log_values import quote_value
from agui_container.runtime.token_bucket import TokenBucket

MINUTE = 60.0

REPORT_SECONDS = 60.0
"""Seconds between two log lines about the same limit of the same caller."""

MIN_SWEEP = 1_000
"""Number of ledgers from which on those without anything to count are removed."""

logger = logging.getLogger(__name__)


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


class Freed(Struct):
    """Amounts that will be given back before the next one is taken: by the caller, and by all callers."""

    own: int = 0
    all: int = 0


NOTHING_FREED = Freed()


class CallerLedger:
    """Resources in use by one caller.

    Args:
        account: name of the caller.
        limits: limits of the caller.
        ledgers: the ledgers of all callers.
    """

    __slots__ = ("_ledgers", "_limits", "_message_rate", "_reported_at", "_run_rate", "_used", "account", "logs")

    def __init__(self, account: str, limits: CallerLimits, ledgers: "CallerLedgers") -> None:
        self.account = account
        self.logs = LogBudget(ledgers.logs.run_bytes, limits.log_bytes, ledgers.logs)
        self._limits = limits
        self._ledgers = ledgers
        self._used = dict.fromkeys(Resource, 0)
        self._run_rate = TokenBucket(limits.runs_per_minute / MINUTE, limits.runs_per_minute, ledgers.now)
        self._message_rate = TokenBucket(limits.messages_per_second, limits.messages_per_second, ledgers.now)
        self._reported_at: dict[str, float] = {}

    # --- what is open ---

    def reached_limit(self, resource: Resource, amount: int = 1, freed: Freed = NOTHING_FREED) -> ReachedLimit | None:
        """Return the limit that leaves no room for ``amount`` more once ``freed`` is given back, or None.

        Bytes of a request above the limit are accepted while there are no others.
        """
        used, limit = self._used[resource] - freed.own, self._ledgers.of_caller[resource]
        if used and used + amount > limit:
            return ReachedLimit(resource, limit, is_callers=True)
        used, limit = self._ledgers.used[resource] - freed.all, self._ledgers.of_process[resource]
        if used and used + amount > limit:
            return ReachedLimit(resource, limit, is_callers=False)
        return None

    def check(self, resource: Resource) -> None:
        """Check that there is room for one more. Raises ``AppError`` RATE_LIMIT_EXCEEDED."""
        if (reached := self.reached_limit(resource)) is not None:
            raise self.refusal(reached)

    def refusal(self, reached: ReachedLimit) -> AppError:
        """Return the error for a limit that is reached, and log it now and then."""
        self._report(reached.resource)
        return reached.error()

    def add(self, resource: Resource, amount: int = 1) -> None:
        """Count what was taken, or with a negative amount what was given back."""
        self._used[resource] += amount
        self._ledgers.used[resource] += amount

    @contextmanager
    def use(self, resource: Resource) -> Iterator[None]:
        """Count one more until the end of the block. Raises ``AppError`` RATE_LIMIT_EXCEEDED."""
        self.check(resource)
        self.add(resource)
        try:
            yield
        finally:
            self.add(resource, -1)

    # --- how often ---

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
            self._report(name)
            raise limit_error(name, noun, limit, is_callers=True, wait_seconds=delay)

    def _report(self, name: str) -> None:
        now = self._ledgers.now()
        if now - self._reported_at.get(name, -REPORT_SECONDS) >= REPORT_SECONDS:
            self._reported_at[name] = now
            logger.warning("limit reached limit=%s caller=%s", name, quote_value(self.account))

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to count."""
        is_in_use = any(self._used.values()) or self.logs.used_bytes
        return not is_in_use and self._run_rate.is_full and self._message_rate.is_full


class CallerLedgers:
    """The ledgers of all callers of a process.

    Args:
        limits: limits of the process.
        caller_limits: limits of each caller.
        clock: the time.

    Attributes:
        used: use by all callers together.
        of_process, of_caller: limits of the process and of one caller.
        logs: budget of the events of all runs.
        now: returns the time in seconds.
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
        self._caller_limits = caller_limits
        self._ledgers: dict[str, CallerLedger] = {}
        self._sweep_at = MIN_SWEEP

    def __len__(self) -> int:
        return len(self._ledgers)

    def of(self, account: str) -> CallerLedger:
        """Return the ledger of a caller, who may be new."""
        ledger = self._ledgers.get(account)
        if ledger is None:
            if len(self._ledgers) >= self._sweep_at:
                self._sweep()
            ledger = self._ledgers[account] = CallerLedger(account, self._caller_limits, self)
        return ledger

    def _sweep(self) -> None:
        """Remove the ledgers without anything to count. The next time is when there are twice as many as now."""
        self._ledgers = {account: ledger for account, ledger in self._ledgers.items() if not ledger.is_idle}
        self._sweep_at = max(MIN_SWEEP, 2 * len(self._ledgers))

    def use(self) -> dict[str, int]:
        """Return what is used of the process's limits, by their names."""
        return {**{resource.value: used for resource, used in self.used.items()}, "logBytes": self.logs.used_bytes}
