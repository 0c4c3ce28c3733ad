"""Limits of runs: open ones of the process, open ones and those of a minute of each identity, and a principal's tokens.

Rule: an identity is the principal of a verified token, or the session where ``AGUI_LIMIT_BY=session`` says that a
gateway sets it. Without either there is the limit of the process alone. Requests, connections and rates by network
address are the concern of a proxy (docs/operations.md).

Rule: a refusal is one error, one log line and one metric.
"""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial

from agui_container.ports import Clock
from agui_container.ports.records import DayTokens
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.event_log import LogMemory
from agui_container.run.policy import CapacityLimits, IdentityLimits
from agui_container.telemetry.instruments import RefusalLog

MINUTE = 60.0


class Limit(StrEnum):
    """Limits by their names in metrics and in the log, the first two also in ``AGUI_CALLER_LIMITS``."""

    RUNS = "runs"
    RUNS_PER_MINUTE = "runsPerMinute"
    LOG_BYTES = "logBytes"
    TOKENS = "tokens"


NOUNS = {Limit.RUNS: "open runs", Limit.RUNS_PER_MINUTE: "runs in a minute", Limit.LOG_BYTES: "bytes of events"}


class Quota:
    def __init__(self, limits: CapacityLimits, identity_limits: IdentityLimits, clock: Clock) -> None:
        self._limits = limits
        self._identity_limits = identity_limits
        self._clock = clock
        self._refusal_log = RefusalLog(clock.time)
        refuse = partial(self.refusal, Limit.LOG_BYTES, limits.all_bytes)
        self.log_memory = LogMemory(limits.run_bytes, limits.all_bytes, refuse)
        self.open_runs = 0
        self._open_of = Counter[str]()
        self._begun_of = Counter[str]()
        """Runs of each identity since the beginning of the minute."""
        self._minute_ends = 0.0

    def take(self, identity: str, freed: Sequence[str] = ()) -> None:
        """Count a run that begins. ``freed`` are the identities of the runs that end for it.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED. Then nothing is counted.
        """
        if self.open_runs - len(freed) >= self._limits.open_runs:
            raise self.refusal(Limit.RUNS, self._limits.open_runs)
        if identity:
            self._take_of_identity(identity, freed.count(identity))
        self.open_runs += 1

    def _take_of_identity(self, identity: str, freed: int) -> None:
        own, now = self._identity_limits, self._clock.time()
        if self._open_of[identity] - freed >= own.runs:
            raise self.refusal(Limit.RUNS, own.runs, identity)
        if not now < self._minute_ends <= now + MINUTE:  # also if the clock of the machine was set back
            self._begun_of.clear()
            self._minute_ends = now + MINUTE
        if self._begun_of[identity] >= own.runs_per_minute:
            wait = math.ceil(self._minute_ends - now)
            raise self.refusal(Limit.RUNS_PER_MINUTE, own.runs_per_minute, identity, wait)
        self._begun_of[identity] += 1
        self._open_of[identity] += 1

    def token_refusal(self, used: DayTokens, most: int, identity: str) -> AppError:
        until = datetime.fromtimestamp(used.day_ends_at, UTC)
        text = f"You have used your {most} tokens of this day (AGUI_PRINCIPAL_TOKENS). "
        text += f"You can go on at {until:%Y-%m-%d %H:%M} UTC."
        return self._refuse(Limit.TOKENS, identity, text, used.day_ends_at - used.now)

    def release(self, identity: str) -> None:
        """Count a run that has ended."""
        self.open_runs -= 1
        if identity:
            self._open_of[identity] -= 1
            if not self._open_of[identity]:
                del self._open_of[identity]

    def refusal(self, limit: Limit, most: int, identity: str = "", wait_seconds: float | None = None) -> AppError:
        text = f"This server has reached its limit of {most} {NOUNS[limit]}."
        if identity:
            text = f"You have reached the limit of {most} {NOUNS[limit]} for one identity (AGUI_CALLER_LIMITS)."
        return self._refuse(limit, identity, text, wait_seconds)

    def _refuse(self, limit: Limit, identity: str, text: str, wait_seconds: float | None) -> AppError:
        """Return RATE_LIMIT_EXCEEDED, count it, and log it now and then."""
        self._refusal_log.report(limit, identity, "identity" if identity else "process")
        return AppError(ErrorCode.RATE_LIMIT_EXCEEDED, text, wait_seconds=wait_seconds)
