"""The operator's policy for runs, as frozen data, and the choices of callers within it.

Rule: settings are parsed to these classes; the engine does not read settings. A caller never gets more than the
operator allows.
"""

import math
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agui_container.ports import RunLimits
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import read_forwarded_prop


class OnBusy(StrEnum):
    REJECT = "reject"
    ENQUEUE = "enqueue"
    INTERRUPT = "interrupt"


class ThreadCondition(Struct, frozen=True):
    """Condition on a thread without which a new run is refused.

    Attributes:
        latest_run: id of the thread's latest run, whose calls the new run answers. If the thread has a newer run, the
            new one is refused with THREAD_BUSY, whatever the policy for a busy thread is. None is no condition.
        is_empty: True if the thread must have no messages, because those of the new run would replace them. Otherwise
            the new one is refused with VALIDATION_ERROR.
    """

    latest_run: str | None = None
    is_empty: bool = False


NO_CONDITION = ThreadCondition()


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
            raise AppError(ErrorCode.VALIDATION_ERROR, f"forwardedProps.onBusy: must be one of {', '.join(OnBusy)}.")
        return OnBusy(choice)
