"""AG-UI events as translators read them, and the meaning of the events that end a run.

Rule: pure functions. They decide for every protocol what the outcome of a run means.
"""

import re
from collections.abc import Mapping
from typing import Any

from ag_ui.core import EventType
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode

Event = Mapping[str, Any]
"""An AG-UI event as decoded JSON."""

FIELD = re.compile(r"(?:^|(?<=; ))[A-Za-z]+(?:\.\w+)*(?=: )")
"""The field of AG-UI that a part of an error message names. Each part is a path, a colon and a text."""

RUN_ENDS = frozenset({EventType.RUN_FINISHED, EventType.RUN_ERROR})
"""Types of the events that end a run."""


class Completed(Struct, frozen=True):
    """The agent has answered."""


class Cancelled(Struct, frozen=True):
    """The run was cancelled, by any client, or the client has cancelled its request."""


class Unanswered(Struct, frozen=True):
    """Calls wait for the client, which sends no more. They stay open, and any client of the thread can answer them."""


class Failed(Struct, frozen=True):
    error: AppError


Outcome = Completed | Cancelled | Unanswered | Failed
"""The end of a conversation."""


def outcome_of(kind: EventType, event: Event) -> Outcome:
    """Return the outcome that the last event of a run tells. Calls that still wait are no part of it."""
    if kind is EventType.RUN_ERROR:
        code = next((it for it in ErrorCode if it == event.get("code")), ErrorCode.AGENT_ERROR)
        return Failed(AppError(code, str(event.get("message", ""))))
    is_cancelled = (event.get("outcome") or {}).get("type") == "cancelled"
    return Cancelled() if is_cancelled else Completed()


def with_field_names(error: AppError, names: Mapping[str, str]) -> AppError:
    """Return a VALIDATION_ERROR with the names that a protocol has for AG-UI's fields.

    ``names`` has a field for each path of AG-UI, without the indexes of lists. The longest beginning of a path counts.
    """
    if error.code is not ErrorCode.VALIDATION_ERROR:
        return error

    def name(match: re.Match[str]) -> str:
        parts = [part for part in match[0].split(".") if not part.isdigit()]
        paths = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        return next((names[path] for path in paths if path in names), match[0])

    return AppError(error.code, FIELD.sub(name, error.message), wait_seconds=error.wait_seconds)


def is_failure(result: Event) -> bool:
    return (result.get("metadata") or {}).get("failed") is True


def is_denied(result: Event) -> bool:
    return (result.get("metadata") or {}).get("denied") is True
