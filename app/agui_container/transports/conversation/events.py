"""AG-UI events as translators read them, and the meaning of the events that end a run.

Rule: pure functions. They decide for every protocol what the outcome of a run means.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from ag_ui.core import EventType
from msgspec import Struct
from pydantic import BaseModel

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Batch

Event = Mapping[str, Any]
"""An AG-UI event as decoded JSON."""

RUN_ENDS = frozenset({EventType.RUN_FINISHED, EventType.RUN_ERROR})
"""Types of the events that end a run."""


class Completed(Struct, frozen=True):
    """The agent has answered."""


class Cancelled(Struct, frozen=True):
    """The run was cancelled, by any client, or the client has cancelled its request."""


class Unanswered(Struct, frozen=True):
    """Calls wait for the client, which sends no more. They stay open, and any client of the thread can answer them."""


class Failed(Struct, frozen=True):
    """The run has failed, or was refused."""

    error: AppError


Outcome = Completed | Cancelled | Unanswered | Failed
"""The end of a conversation."""


def decoded_events(batch: Batch) -> Iterator[tuple[EventType, Event]]:
    """Iterate over the events of a batch, with their types."""
    return zip(batch.types, map(orjson.loads, batch.data), strict=True)


def outcome_of(kind: EventType, event: Event) -> Outcome:
    """Return the outcome that the last event of a run tells. Calls that still wait are no part of it."""
    if kind is EventType.RUN_ERROR:
        return Failed(error_of(event))
    is_cancelled = (event.get("outcome") or {}).get("type") == "cancelled"
    return Cancelled() if is_cancelled else Completed()


def error_of(event: Event) -> AppError:
    """Return the error of a RUN_ERROR event."""
    code = next((known_code for known_code in ErrorCode if known_code == event.get("code")), ErrorCode.AGENT_ERROR)
    return AppError(code, str(event.get("message", "")))


def text_of(content: object) -> str:
    """Return the text of a tool result's content, which is text or content parts."""
    if isinstance(content, str):
        return content
    return "\n".join(map(part_text, content)) if isinstance(content, list) else ""


def part_text(part: object) -> str:
    """Return the text of a content part, decoded JSON or a model, or the type of a part without text."""
    if isinstance(part, BaseModel):
        text, kind = getattr(part, "text", None), getattr(part, "type", "content")
    elif isinstance(part, Mapping):
        text, kind = part.get("text"), part.get("type", "content")
    else:
        return ""
    return text if isinstance(text, str) else f"[{kind}]"


def is_failure(result: Event) -> bool:
    """True if a TOOL_CALL_RESULT event is the result of a failed call."""
    return (result.get("metadata") or {}).get("failed") is True


def is_denied(result: Event) -> bool:
    """True if a TOOL_CALL_RESULT event is the result of a call that a person has denied or cancelled."""
    return (result.get("metadata") or {}).get("denied") is True
