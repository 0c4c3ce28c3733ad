"""Errors for limits of the process and of one caller.

Rule: the message names the limit, and the setting that changes it. Each error is counted in telemetry.
"""

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.telemetry import count_refusal

SETTING = "AGUI_CALLER_LIMITS"


def limit_error(name: str, noun: str, limit: int, *, is_callers: bool, wait_seconds: float | None = None) -> AppError:
    """Return RATE_LIMIT_EXCEEDED for a limit that is reached.

    Args:
        name: name of the limit in ``AGUI_CALLER_LIMITS``.
        noun: the counted things, in the plural.
        limit: number of things that are allowed.
        is_callers: True for the limit of one caller, False for that of the process.
        wait_seconds: seconds until the next one is allowed, if they are known.
    """
    count_refusal(name, "caller" if is_callers else "process")
    if is_callers:
        message = f"You have reached the limit of {limit} {noun} for one caller ({SETTING}, {name})."
    else:
        message = f"This server has reached its limit of {limit} {noun}."
    return AppError(ErrorCode.RATE_LIMIT_EXCEEDED, message, wait_seconds=wait_seconds)
