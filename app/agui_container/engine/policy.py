"""The operator's policy for runs, as frozen data, and the choices of callers within it.

Rule: settings are parsed to these classes; the engine does not read settings. A caller never gets more than the
operator allows.
"""

import math
from enum import StrEnum
from typing import Annotated

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agui_container.ports import RunLimits
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import read_forwarded_prop


class OnBusy(StrEnum):
    """Treatment of a new run on a thread that has an open run."""

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
    """Treatment of a run without readers.

    Attributes:
        grace: seconds after which the run is cancelled; 0 cancels it at once, None never.
    """

    grace: float | None


class CapacityLimits(Struct, frozen=True):
    """Limits of one process. A limit ends or refuses a run with a clear error, or removes ended runs from memory.

    Attributes:
        run_bytes: JSON of one run's events plus 64 bytes each; a larger run ends with RUN_LIMIT_EXCEEDED.
        all_bytes: the same for all runs together, open and ended; above it, runs that produce more events end with
            RATE_LIMIT_EXCEEDED.
        open_runs: number of open runs; more are refused with RATE_LIMIT_EXCEEDED.
        open_bytes: bytes of the requests of all open runs; more are refused with RATE_LIMIT_EXCEEDED.
        open_streams: number of open readers of runs; more are refused with RATE_LIMIT_EXCEEDED.
        open_sockets: number of open WebSockets and gRPC calls; more are refused with RATE_LIMIT_EXCEEDED.
        bytes_in_flight: bytes of requests that are arriving and of responses that their clients have not taken.
        background_tasks: number of tasks that outlive their runs; while there are as many, runs are refused with
            RATE_LIMIT_EXCEEDED.
        queued_runs: number of queued runs of one thread; more are refused with THREAD_BUSY.
        kept_runs: number of ended runs in memory; the oldest are removed first. Runs in a database are not counted.
        kept_bytes: bytes of the events of ended runs in memory; the oldest are removed first.
        remembered_ids: number of removed runs whose ids are still known, so that a late retry is not executed again.
    """

    run_bytes: int = 128_000_000
    all_bytes: int = 1_000_000_000
    open_runs: int = 2_000
    open_bytes: int = 100_000_000
    open_streams: int = 4_000
    open_sockets: int = 2_000
    bytes_in_flight: int = 200_000_000
    background_tasks: int = 2_000
    queued_runs: int = 16
    kept_runs: int = 1_000
    kept_bytes: int = 256_000_000
    remembered_ids: int = 100_000


class IdentityLimits(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Limits of one identity, by their names in ``AGUI_CALLER_LIMITS``. The defaults are half of the process's limits.

    Attributes:
        runs: open runs.
        request_bytes: bytes of the requests of open runs.
        runs_per_minute: runs that begin in a minute. There is no such limit of the process.
        log_bytes: bytes of the events of all runs in memory, open and ended.
        streams: open readers of runs.
        sockets: open WebSockets and gRPC calls.
        messages_per_second: messages on all WebSockets and gRPC calls in a second. There is no such limit of the
            process.
        background_tasks: tasks that outlive their runs.
    """

    runs: int = 1_000
    request_bytes: int = 50_000_000
    runs_per_minute: int = 6_000
    log_bytes: int = 500_000_000
    streams: int = 2_000
    sockets: int = 1_000
    messages_per_second: int = 500
    background_tasks: int = 1_000

    def check_within(self, process: CapacityLimits) -> None:
        """Check each limit: at least 1, and at most the limit of the process. Raises ``ValueError``."""
        largest = {
            "runs": process.open_runs,
            "request_bytes": process.open_bytes,
            "log_bytes": process.all_bytes,
            "streams": process.open_streams,
            "sockets": process.open_sockets,
            "background_tasks": process.background_tasks,
        }
        for name, encoded in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            value, limit = getattr(self, name), largest.get(name, MAX_RATE)
            if not 1 <= value <= limit:
                raise ValueError(f"{encoded}: must be from 1 to {limit}")


MAX_RATE = 1_000_000_000
"""Largest rate of an identity. It is no limit in practice."""

PositiveInt = Annotated[int, Field(ge=1, strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]


class RequestedLimits(BaseModel):
    """``forwardedProps.budget`` of a request: the limits that the caller asks for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: PositiveInt | None = None
    tokens: PositiveInt | None = None
    seconds: Seconds | None = None
    context_tokens: Annotated[PositiveInt | None, Field(alias="contextTokens")] = None

    @property
    def as_limits(self) -> RunLimits:
        """The same limits as ``RunLimits``."""
        return RunLimits(self.steps, self.tokens, self.seconds or math.inf, self.context_tokens)


REQUESTED_LIMITS = TypeAdapter(RequestedLimits)


class Policy(Struct, frozen=True):
    """The operator's policy.

    Attributes:
        on_busy: treatment of a new run on a busy thread, unless the caller chooses another.
        on_disconnect: treatment of a run without readers.
        run_timeout: longest duration of a run, in seconds.
        limits: limits of the process.
        identity_limits: limits of one identity.
    """

    on_busy: OnBusy = OnBusy.REJECT
    on_disconnect: OnDisconnect = field(default_factory=lambda: OnDisconnect(30.0))
    run_timeout: float = 3300.0
    limits: CapacityLimits = field(default_factory=CapacityLimits)
    identity_limits: IdentityLimits = field(default_factory=IdentityLimits)

    def run_limits(self, props: object) -> RunLimits:
        """Return the limits that the caller asks for in ``forwardedProps.budget``, within ``run_timeout``.

        Raises:
            AppError: VALIDATION_ERROR, naming the field.
        """
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
