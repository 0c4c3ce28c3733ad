"""The operator's policy for runs, and its limits: open runs, runs of a minute, bytes of events and a day's tokens.

Rule: settings are parsed to frozen data; the engine does not read settings. A caller may choose within the policy and
never gets more than the operator allows.

Rule: an identity is the principal of a verified token, or the session where ``AGUI_LIMIT_BY=session`` says that a
gateway sets it. Without either there is the limit of the process alone. Requests, connections and rates by network
address are the concern of a proxy (docs/operations.md). A refusal is one error, one log line and one metric.
"""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct, field
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agui_container.ports import Clock, RunLimits
from agui_container.ports.records import DayTokens
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocol.parser import read_forwarded_prop
from agui_container.run.event_log import LogMemory
from agui_container.run.policy import OnBusy
from agui_container.telemetry.instruments import RefusalLog


class OnDisconnect(Struct, frozen=True):
    """Treatment of a run without readers. It is cancelled after ``grace`` seconds: 0 is at once, None never."""

    grace: float | None


OPEN_RUNS = 2_000
"""Most open runs of a process, and of an identity."""


class CapacityLimits(Struct, frozen=True):
    """Limits of one process. A limit ends or refuses a run with a clear error, or removes ended runs from memory."""

    run_bytes: int = 128_000_000
    all_bytes: int = 1_000_000_000
    open_runs: int = OPEN_RUNS
    queued_runs: int = 16
    kept_runs: int = 1_000
    kept_bytes: int = 32_000_000


class IdentityLimits(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Limits of one identity, by their names in ``AGUI_CALLER_LIMITS``. The defaults are half of the process's limits.

    Attributes:
        runs: open runs.
        runs_per_minute: runs that begin in a minute. There is no such limit of the process.
    """

    runs: Annotated[int, Meta(ge=1, le=OPEN_RUNS)] = 1_000
    runs_per_minute: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 6_000


PositiveInt = Annotated[int, Field(ge=1, strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class RequestedLimits(BaseModel):
    """``forwardedProps.budget`` of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: PositiveInt | None = None
    tokens: PositiveInt | None = None
    seconds: Seconds | None = None
    context_tokens: Annotated[PositiveInt | None, Field(alias="contextTokens")] = None

    @property
    def as_limits(self) -> RunLimits:
        return RunLimits(self.steps, self.tokens, self.seconds or math.inf, self.context_tokens)


REQUESTED_LIMITS = TypeAdapter(RequestedLimits)


class Policy(Struct, frozen=True):
    """The operator's policy."""

    on_busy: OnBusy = OnBusy.REJECT
    on_disconnect: OnDisconnect = field(default_factory=lambda: OnDisconnect(30.0))
    run_timeout: float = 3300.0
    limits: CapacityLimits = field(default_factory=CapacityLimits)
    identity_limits: IdentityLimits = field(default_factory=IdentityLimits)

    def run_limits(self, props: object) -> RunLimits:
        """Return ``forwardedProps.budget``, within ``run_timeout``. Raises ``AppError`` VALIDATION_ERROR."""
        requested = read_forwarded_prop(props, "budget", REQUESTED_LIMITS)
        limits = RunLimits(seconds=self.run_timeout)
        return limits.capped_by(requested.as_limits) if requested else limits

    def busy_choice(self, props: object) -> OnBusy:
        """Return ``forwardedProps.onBusy``, or ``on_busy`` without one. Raises ``AppError`` VALIDATION_ERROR."""
        choice = props.get("onBusy") if isinstance(props, dict) else None
        if choice is None:
            return self.on_busy
        if choice not in tuple(OnBusy):
            raise validation_error(f"forwardedProps.onBusy: must be one of {', '.join(OnBusy)}.")
        return OnBusy(choice)


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
