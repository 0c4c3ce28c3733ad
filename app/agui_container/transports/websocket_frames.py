"""Requests that arrive on a WebSocket, and the control frames that answer them.

Rule: a control frame has ``control`` in the place of an event's ``type``.
"""

import json
from collections.abc import Mapping

from msgspec import Struct

from agui_container.engine.admission.quota import QuotaLease
from agui_container.protocol.commands import Attach, Cancel
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.parser import RunRequest


class Frame(Struct, frozen=True):
    """A request of the client, whose bytes count as in flight until it has been executed."""

    request: AgentRequest
    lease: QuotaLease


def control_fields(kind: str, **fields: object) -> dict[str, object]:
    """Return the fields of a control frame. Those that are None are left out."""
    return {"control": kind, **{name: value for name, value in fields.items() if value is not None}}


def control_frame(kind: str, **fields: object) -> str:
    """Return a control frame. Fields that are None are left out."""
    return json.dumps(control_fields(kind, **fields), ensure_ascii=False)


def error_frame(error: AppError, request_id: str, ids: Mapping[str, object]) -> str:
    """Return the control frame for an error. ``ids`` identify the request that the frame answers."""
    return control_frame(
        "error",
        **ids,
        code=error.code,
        message=error.message,
        retryable=error.spec.is_retryable,
        retryAfter=error.wait_seconds,
        requestId=request_id,
    )


def has_no_ids(command: Cancel | Attach) -> bool:
    """True if a command names neither a thread nor a run."""
    return command.thread_id is None and command.run_id is None


def request_ids(request: AgentRequest) -> dict[str, object]:
    """Return the ids of a request that an error frame repeats: those of the run, or the frame's own id."""
    if isinstance(request, RunRequest):
        return {"threadId": request.run_input.thread_id, "runId": request.run_input.run_id}
    return {"id": request.frame_id}
