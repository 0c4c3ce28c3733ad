"""Every way a request or a run can fail: one closed ``Code`` and one table.

Rule: an error reaches a client only as an ``AppError``. Its message is written for people and never holds
exception text, paths or secrets; the log has those. A new transport adds a column to the table, never a second table.

Source of the codes: AgentCore's AG-UI contract (UNAUTHORIZED to RATE_LIMIT_EXCEEDED, AGENT_ERROR); the others are ours.
"""

from enum import StrEnum
from http import HTTPStatus

from ag_ui.core import RunErrorEvent
from msgspec import Struct


class Code(StrEnum):
    """What went wrong, as clients see it in ``RUN_ERROR.code``."""

    UNAUTHORIZED = "UNAUTHORIZED"
    ACCESS_DENIED = "ACCESS_DENIED"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    THREAD_BUSY = "THREAD_BUSY"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    THREAD_NOT_FOUND = "THREAD_NOT_FOUND"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    AGENT_ERROR = "AGENT_ERROR"
    RUN_TIMEOUT = "RUN_TIMEOUT"
    RUN_LIMIT_EXCEEDED = "RUN_LIMIT_EXCEEDED"
    RUN_LOST = "RUN_LOST"
    MODEL_ERROR = "MODEL_ERROR"
    MODEL_ACCESS_DENIED = "MODEL_ACCESS_DENIED"
    MODEL_NOT_FOUND = "MODEL_NOT_FOUND"
    MODEL_REJECTED = "MODEL_REJECTED"
    MODEL_THROTTLED = "MODEL_THROTTLED"
    MODEL_TIMEOUT = "MODEL_TIMEOUT"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    MODEL_CONTEXT_EXCEEDED = "MODEL_CONTEXT_EXCEEDED"


MAX_SAID = 500
"""Characters that are said of one field."""


class Row(Struct, frozen=True):
    """How one code looks on each transport.

    ``http`` is the status before a stream has begun (200 for what can only happen inside one), ``ws_close`` the close
    code where the error ends a connection, ``grpc`` the name of the status of a call that it ends, and ``retryable``
    whether the same request may succeed later, unchanged.
    """

    http: int
    ws_close: int
    grpc: str
    retryable: bool


TABLE: dict[Code, Row] = {
    Code.UNAUTHORIZED: Row(401, 1008, "UNAUTHENTICATED", retryable=False),
    Code.ACCESS_DENIED: Row(403, 1008, "PERMISSION_DENIED", retryable=False),
    Code.VALIDATION_ERROR: Row(400, 1007, "INVALID_ARGUMENT", retryable=False),
    Code.PAYLOAD_TOO_LARGE: Row(413, 1009, "RESOURCE_EXHAUSTED", retryable=False),
    Code.RATE_LIMIT_EXCEEDED: Row(429, 1013, "RESOURCE_EXHAUSTED", retryable=True),
    Code.THREAD_BUSY: Row(409, 1013, "ABORTED", retryable=True),
    Code.RUN_NOT_FOUND: Row(404, 1008, "NOT_FOUND", retryable=False),
    Code.SHUTTING_DOWN: Row(503, 1012, "UNAVAILABLE", retryable=True),
    Code.STORE_UNAVAILABLE: Row(503, 1013, "UNAVAILABLE", retryable=True),
    Code.THREAD_NOT_FOUND: Row(404, 1008, "NOT_FOUND", retryable=False),
    Code.INTERNAL_ERROR: Row(500, 1011, "INTERNAL", retryable=True),
    Code.AGENT_ERROR: Row(200, 1011, "UNKNOWN", retryable=False),
    Code.RUN_TIMEOUT: Row(200, 1011, "DEADLINE_EXCEEDED", retryable=True),
    Code.RUN_LIMIT_EXCEEDED: Row(200, 1011, "RESOURCE_EXHAUSTED", retryable=False),
    Code.RUN_LOST: Row(200, 1011, "UNAVAILABLE", retryable=True),
    Code.MODEL_ERROR: Row(200, 1011, "UNKNOWN", retryable=True),
    Code.MODEL_ACCESS_DENIED: Row(200, 1011, "FAILED_PRECONDITION", retryable=False),
    Code.MODEL_NOT_FOUND: Row(200, 1011, "FAILED_PRECONDITION", retryable=False),
    Code.MODEL_REJECTED: Row(200, 1011, "FAILED_PRECONDITION", retryable=False),
    Code.MODEL_THROTTLED: Row(200, 1011, "RESOURCE_EXHAUSTED", retryable=True),
    Code.MODEL_TIMEOUT: Row(200, 1011, "DEADLINE_EXCEEDED", retryable=True),
    Code.MODEL_UNAVAILABLE: Row(200, 1011, "UNAVAILABLE", retryable=True),
    Code.MODEL_CONTEXT_EXCEEDED: Row(200, 1011, "OUT_OF_RANGE", retryable=False),
}


class AppError(Exception):
    """A failure that a client may see.

    Args:
        code: the row of ``TABLE`` it belongs to.
        message: one sentence for a person; safe to show to anybody.

    Raises:
        ValueError: there is no such code, or the message is no text that can be sent.
    """

    def __init__(self, code: Code, message: str) -> None:
        if not isinstance(message, str):
            raise ValueError(f"the message of an AppError is a sentence, not a {type(message).__name__}")  # noqa: TRY004
        message.encode()
        super().__init__(message)
        self.code = Code(code)
        self.message = message

    @property
    def row(self) -> Row:
        """The error's columns: HTTP status, WebSocket close code, gRPC status, whether a retry can help."""
        return TABLE[self.code]

    @property
    def is_callers(self) -> bool:
        """Whether the caller can put it right; then a log needs no traceback."""
        return HTTPStatus.BAD_REQUEST <= self.row.http < HTTPStatus.INTERNAL_SERVER_ERROR


def run_error(error: AppError, request_id: str) -> RunErrorEvent:
    """The RUN_ERROR that tells a client of ``error``, with the request id under which the log has the cause."""
    metadata = {"requestId": request_id, "retryable": error.row.retryable}
    return RunErrorEvent(code=error.code, message=error.message, metadata=metadata)


def clipped(words: str) -> str:
    """What is said of a mistake, where it says back what was sent: a caller knows that, and a log is not for it."""
    return words if len(words) <= MAX_SAID else f"{words[:MAX_SAID]}…"


class IllegalEvent(Exception):
    """An agent yielded something AG-UI forbids at this point. The text is for the log, not for clients."""
