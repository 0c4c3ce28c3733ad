"""Treatment of the other runs of a thread by a new one, and the condition on which the new one begins.

Rule: these are the terms of a run that transports know. The operator's policy and limits are in ``engine/limits``.
"""

from enum import StrEnum

from msgspec import Struct


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
