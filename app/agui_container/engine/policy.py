"""The choices an operator makes about runs, as frozen data, and what a caller may choose within them.

Rule: settings parse to these; the engine knows no settings. A caller never gets more than the operator allows.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agui_container.ports import RunLimits
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.forwarded_props import read_forwarded_prop


class OnBusy(StrEnum):
    """What a second run on a busy thread gets."""

    REJECT = "reject"
    ENQUEUE = "enqueue"
    INTERRUPT = "interrupt"


class OnDisconnect(Struct, frozen=True):
    """What happens once a run's last reader is gone: cancel after ``grace`` seconds (0 at once), or never (None)."""

    grace: float | None


class CapacityLimits(Struct, frozen=True):
    """What one process holds at most. Each limit bites with a clear error, or forgets only what has ended.

    Attributes:
        run_bytes: events of one run, their JSON and 64 bytes each; more ends it with RUN_LIMIT_EXCEEDED.
        all_bytes: encoded events of all runs together, open and kept; above it, runs that go on writing are ended.
        open_runs: runs that are not over; more are refused with RATE_LIMIT_EXCEEDED.
        open_bytes: what asked for those, together; beside them, more is refused with RATE_LIMIT_EXCEEDED.
        queued_runs: runs waiting on one thread; more are refused with THREAD_BUSY.
        kept_runs, kept_bytes: ended runs that are read from memory; the oldest are forgotten first. What a database has
            is not kept here.
        remembered_ids: forgotten runs whose ids are still known, so that a late retry does not run again.
    """

    run_bytes: int = 128_000_000
    all_bytes: int = 1_000_000_000
    open_runs: int = 2_000
    open_bytes: int = 100_000_000
    queued_runs: int = 16
    kept_runs: int = 1_000
    kept_bytes: int = 256_000_000
    remembered_ids: int = 100_000


Whole = Annotated[int, Field(ge=1, strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class RequestedLimits(BaseModel):
    """``forwardedProps.budget``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: Whole | None = None
    tokens: Whole | None = None
    seconds: Seconds | None = None
    context_tokens: Annotated[Whole | None, Field(alias="contextTokens")] = None

    @property
    def as_limits(self) -> RunLimits:
        """The same as limits."""
        return RunLimits(self.steps, self.tokens, self.seconds or math.inf, self.context_tokens)


REQUESTED_LIMITS = TypeAdapter(RequestedLimits)


class Policy(Struct, frozen=True):
    """All of them. ``run_timeout`` is in seconds."""

    on_busy: OnBusy = OnBusy.REJECT
    on_disconnect: OnDisconnect = field(default_factory=lambda: OnDisconnect(30.0))
    run_timeout: float = 3300.0
    limits: CapacityLimits = field(default_factory=CapacityLimits)

    def run_limits(self, props: object) -> RunLimits:
        """What a run may use: what its caller asks for in ``forwardedProps``, within ``run_timeout``.

        Raises:
            AppError: VALIDATION_ERROR, naming the field.
        """
        asked = read_forwarded_prop(props, "budget", REQUESTED_LIMITS)
        own = RunLimits(seconds=self.run_timeout)
        return own.capped_by(asked.as_limits) if asked else own


def busy_choice(props: object, default: OnBusy) -> OnBusy:
    """``forwardedProps.onBusy`` where it is given. Raises ``AppError`` VALIDATION_ERROR."""
    choice = props.get("onBusy") if isinstance(props, Mapping) else None
    if choice is None:
        return default
    if choice not in tuple(OnBusy):
        raise AppError(ErrorCode.VALIDATION_ERROR, f"forwardedProps.onBusy: must be one of {', '.join(OnBusy)}.")
    return OnBusy(choice)
