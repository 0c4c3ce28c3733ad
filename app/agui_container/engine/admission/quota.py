"""Limits of scarce things, and what the process and each identity have in use of them.

Rule: an identity is the principal of a verified token, or the session where ``AGUI_LIMIT_BY=session`` says that a
gateway sets it. Without either there are the limits of the process alone. Rates and connections by network address are
the concern of a proxy (docs/limits.md).

Rule: a thing is in use as long as its lease. A refusal is one error, one log line and one metric.
"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from types import TracebackType
from typing import Self

from msgspec import Struct

from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.ports import Clock
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.token_bucket import TokenBucket
from agui_container.telemetry import RefusalLog

MINUTE = 60.0

SMALL_BYTES = 16_000
"""Size of a body, frame or response, in bytes, up to which it does not count as in flight. So small requests are served
even if the limit is reached."""

WAIT_SECONDS = 60.0
"""Seconds that an event may wait until there is room for its bytes."""

RETRY_SECONDS = 1.0
"""Seconds after which a client may try again for whose bytes there is no room."""

MIN_SWEEP = 1_000
"""Number of identities from which on those without anything in use are forgotten."""


class Limit(StrEnum):
    """Scarce things, by their names in ``AGUI_CALLER_LIMITS``, in metrics and in the log."""

    RUNS = "runs"
    REQUEST_BYTES = "requestBytes"
    STREAMS = "streams"
    SOCKETS = "sockets"
    BACKGROUND_TASKS = "backgroundTasks"
    LOG_BYTES = "logBytes"
    BYTES_IN_FLIGHT = "bytesInFlight"
    RUNS_PER_MINUTE = "runsPerMinute"
    MESSAGES_PER_SECOND = "messagesPerSecond"


NOUNS = {
    Limit.RUNS: "open runs",
    Limit.REQUEST_BYTES: "bytes of requests of open runs",
    Limit.STREAMS: "open streams",
    Limit.SOCKETS: "open sockets",
    Limit.BACKGROUND_TASKS: "background tasks",
    Limit.LOG_BYTES: "bytes of events",
    Limit.RUNS_PER_MINUTE: "runs in a minute",
    Limit.MESSAGES_PER_SECOND: "messages in a second",
}


def limit_error(limit: Limit, most: int, *, is_of_identity: bool, wait_seconds: float | None = None) -> AppError:
    """Return RATE_LIMIT_EXCEEDED for a limit that is reached. ``most`` is what is allowed."""
    if limit is Limit.BYTES_IN_FLIGHT:
        message, wait_seconds = (
            "Too many bytes are being sent or are unread; see AGUI_MAX_BYTES_IN_FLIGHT.",
            RETRY_SECONDS,
        )
    elif is_of_identity:
        message = f"You have reached the limit of {most} {NOUNS[limit]} for one identity (AGUI_CALLER_LIMITS, {limit})."
    else:
        message = f"This server has reached its limit of {most} {NOUNS[limit]}."
    return AppError(ErrorCode.RATE_LIMIT_EXCEEDED, message, wait_seconds=wait_seconds)


class Amount:
    """Use of one scarce thing by the process or by one identity.

    Attributes:
        name: the thing.
        most: what may be in use.
        used: what is in use.
        is_of_identity: True for an amount of one identity.
    """

    __slots__ = ("is_of_identity", "most", "name", "used")

    def __init__(self, name: Limit, most: int, *, is_of_identity: bool = False) -> None:
        self.name = name
        self.most = most
        self.used = 0
        self.is_of_identity = is_of_identity


class Freed(Struct):
    """Amounts that will be free before the next one is taken: those of the identity, and all."""

    own: int = 0
    all: int = 0


NOTHING = Freed()


class QuotaLease(Struct, eq=False):
    """An amount in use, none at first. A context manager, which gives the amount back at its end.

    Attributes:
        quota: what the identity has in use.
        name: the thing.
        size: the amount that counts.
    """

    quota: "IdentityQuota"
    name: Limit
    size: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.release()

    def resize(self, amount: int) -> None:
        """Count ``amount`` from now on.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if there is no room for it. Then nothing changes.
        """
        more = counted(self.name, amount) - self.size
        if more > 0:
            self.quota.check(self.name, more)
        if more:
            self.size += more
            self.quota.change(self.name, more)

    def release(self) -> None:
        """Give the amount back."""
        if self.size:
            self.quota.change(self.name, -self.size)
            self.size = 0


def counted(name: Limit, amount: int) -> int:
    """Return the amount that counts. Small sizes do not count as bytes in flight."""
    return 0 if name is Limit.BYTES_IN_FLIGHT and amount <= SMALL_BYTES else amount


class IdentityQuota:
    """Scarce things in use by one identity, within those of the process.

    Args:
        identity: its name. An empty one has no limits of its own.
        quota: the limits of the process.
        limits: limits of the identity.
    """

    __slots__ = ("_amounts", "_quota", "_rates", "identity")

    def __init__(self, identity: str, quota: "Quota", limits: IdentityLimits) -> None:
        self.identity = identity
        self._quota = quota
        process = quota.amounts
        own = quota.limits_of_identity(limits) if identity else {}
        self._amounts = {
            name: (Amount(name, own[name], is_of_identity=True), process[name]) if name in own else (process[name],)
            for name in process
        }
        self._rates = make_rates(limits, quota.clock) if identity else {}

    def amounts(self, name: Limit) -> tuple[Amount, ...]:
        """Return the amounts that a thing counts in: that of the identity, and that of the process."""
        return self._amounts[name]

    def shortage(self, name: Limit, amount: int = 1, freed: Freed = NOTHING) -> Amount | None:
        """Return the amount that has no room for ``amount`` more once ``freed`` is free, or None.

        The bytes of one request always fit if there are no others.
        """
        for each in self._amounts[name]:
            used = each.used - (freed.own if each.is_of_identity else freed.all)
            if used + amount > each.most and (used or name is not Limit.REQUEST_BYTES):
                return each
        return None

    def check(self, name: Limit, amount: int = 1) -> None:
        """Check that there is room for ``amount`` more. Raises ``AppError`` RATE_LIMIT_EXCEEDED."""
        if (full := self.shortage(name, amount)) is not None:
            raise self.refusal(full)

    def refusal(self, full: Amount) -> AppError:
        """Return the error for an amount without room, count it, and log it now and then."""
        self._quota.refusal_log.report(full.name, self.identity, "identity" if full.is_of_identity else "process")
        return limit_error(full.name, full.most, is_of_identity=full.is_of_identity)

    def acquire(self, name: Limit, amount: int = 1) -> QuotaLease:
        """Take an amount. Raises ``AppError`` RATE_LIMIT_EXCEEDED if there is no room for it."""
        lease = QuotaLease(self, name)
        lease.resize(amount)
        return lease

    async def acquire_when_free(self, name: Limit, amount: int) -> QuotaLease:
        """Take an amount as soon as there is room for it.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if there is none for ``WAIT_SECONDS``.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_SECONDS
        while self.shortage(name, counted(name, amount)) is not None and loop.time() < deadline:
            await self._quota.wait_for_release(deadline)
        return self.acquire(name, amount)

    def hold(self, name: Limit, amount: int = 1) -> QuotaLease:
        """Take an amount that must not be refused."""
        self.change(name, amount)
        return QuotaLease(self, name, amount)

    def change(self, name: Limit, more: int) -> None:
        """Add to the amounts in use. Leases call this."""
        for each in self._amounts[name]:
            each.used += more
        if more < 0:
            self._quota.notify()

    def count(self, rate: Limit) -> None:
        """Count one more in a rate. Raises ``AppError`` RATE_LIMIT_EXCEEDED with the seconds to wait."""
        if rate not in self._rates:
            return
        most, bucket = self._rates[rate]
        if (delay := bucket.delay()) > 0:
            self._quota.refusal_log.report(rate, self.identity, "identity")
            raise limit_error(rate, most, is_of_identity=True, wait_seconds=delay)

    @property
    def is_idle(self) -> bool:
        """True if the identity has nothing in use, and its rates are as at the beginning."""
        is_in_use = any(each.used for amounts in self._amounts.values() for each in amounts if each.is_of_identity)
        return not is_in_use and all(bucket.is_full for _, bucket in self._rates.values())


def make_rates(limits: IdentityLimits, clock: Clock) -> Mapping[Limit, tuple[int, TokenBucket]]:
    """Return the rates of an identity. The process has none, because a flood of one client would refuse all others."""
    a_minute, a_second = limits.runs_per_minute, limits.messages_per_second
    return {
        Limit.RUNS_PER_MINUTE: (a_minute, TokenBucket(a_minute / MINUTE, a_minute, clock.time)),
        Limit.MESSAGES_PER_SECOND: (a_second, TokenBucket(a_second, a_second, clock.time)),
    }


class Quota:
    """Scarce things of one process.

    Args:
        limits: limits of the process.
        identity_limits: limits of each identity.
        clock: the time.

    Attributes:
        amounts: use by the whole process.
        refusal_log: log of the limits that were reached.
    """

    def __init__(self, limits: CapacityLimits, identity_limits: IdentityLimits, clock: Clock) -> None:
        self.clock = clock
        self.refusal_log = RefusalLog(clock.time)
        self.amounts: Mapping[Limit, Amount] = {
            name: Amount(name, most)
            for name, most in (
                (Limit.RUNS, limits.open_runs),
                (Limit.REQUEST_BYTES, limits.open_bytes),
                (Limit.STREAMS, limits.open_streams),
                (Limit.SOCKETS, limits.open_sockets),
                (Limit.BACKGROUND_TASKS, limits.background_tasks),
                (Limit.LOG_BYTES, limits.all_bytes),
                (Limit.BYTES_IN_FLIGHT, limits.bytes_in_flight),
            )
        }
        self._identity_limits = identity_limits
        self._without_identity = IdentityQuota("", self, identity_limits)
        self._identities: dict[str, IdentityQuota] = {}
        self._sweep_at = MIN_SWEEP
        self._waiting: set[asyncio.Future[None]] = set()

    def limits_of_identity(self, limits: IdentityLimits) -> Mapping[Limit, int]:
        """Return what an identity may have in use. Of the bytes in flight it is half of what the process may have."""
        return {
            Limit.RUNS: limits.runs,
            Limit.REQUEST_BYTES: limits.request_bytes,
            Limit.STREAMS: limits.streams,
            Limit.SOCKETS: limits.sockets,
            Limit.BACKGROUND_TASKS: limits.background_tasks,
            Limit.LOG_BYTES: limits.log_bytes,
            Limit.BYTES_IN_FLIGHT: self.amounts[Limit.BYTES_IN_FLIGHT].most // 2,
        }

    def of(self, identity: str) -> IdentityQuota:
        """Return the quota of an identity, known or new. An empty one has the limits of the process alone."""
        if not identity:
            return self._without_identity
        quota = self._identities.get(identity)
        if quota is None:
            if len(self._identities) >= self._sweep_at:
                self._sweep()
            quota = self._identities[identity] = IdentityQuota(identity, self, self._identity_limits)
        return quota

    def _sweep(self) -> None:
        """Forget identities without anything in use. The next sweep is when there are twice as many as now."""
        self._identities = {name: quota for name, quota in self._identities.items() if not quota.is_idle}
        self._sweep_at = max(MIN_SWEEP, 2 * len(self._identities))

    async def wait_for_release(self, deadline: float) -> None:
        """Wait until something is given back, or until the event loop's time is ``deadline``."""
        loop = asyncio.get_running_loop()
        released: asyncio.Future[None] = loop.create_future()
        self._waiting.add(released)
        try:
            await asyncio.wait([released], timeout=deadline - loop.time())
        finally:
            self._waiting.discard(released)

    def notify(self) -> None:
        """Wake all that wait for room."""
        for released in self._waiting:
            if not released.done():
                released.set_result(None)

    def use(self) -> dict[str, int]:
        """Return the amounts in use by the whole process, by the names of their limits."""
        return {name.value: amount.used for name, amount in self.amounts.items()}
