"""Findings: the results of checks."""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from agui_container.settings import Settings


class CheckStatus(StrEnum):
    """Result of a check. Only ``FAILED`` makes ``agui doctor`` fail."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Finding(Struct, frozen=True, omit_defaults=True):
    """Result of one check.

    Attributes:
        name: subject of the check.
        status: result.
        detail: fact that was found.
        advice: sentence that says what to do; empty if there is nothing to do.
    """

    name: str
    status: CheckStatus
    detail: str
    advice: str = ""


Check = Callable[[Settings], Awaitable[Sequence[Finding]]]
"""A check of what settings name. An exception that it raises is a finding, too."""


def reason_of(error: BaseException) -> str:
    """Return the text of an error and the first line of its cause, for the operator."""
    text, cause = str(error).rstrip("."), error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if cause is None:
        return text
    return ": ".join(filter(None, (text, type(cause).__name__, next(iter(str(cause).splitlines()), ""))))
