"""Every way a request or a run can fail: one closed ``ErrorCode`` and one table.

Rule: an error reaches a client only as an ``AppError``. Its message is written for people and never holds
exception text, paths or secrets; the log has those. A new transport adds a column to the table, never a second table.

Source of the codes: AgentCore's AG-UI contract (UNAUTHORIZED to RATE_LIMIT_EXCEEDED, AGENT_ERROR); the others are ours.
"""

from enum import StrEnum
from http import HTTPStatus

from ag_ui.core import RunErrorEvent
from msgspec import Struct


class ErrorCode(StrEnum):
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


MAX_QUOTED = 500
"""Characters that are said of one field."""


class ErrorSpec(Struct, frozen=True):
    """How one code looks on each transport.

    ``http`` is the status before a stream has begun (200 for what can only happen inside one), ``ws_close`` the close
    code where the error ends a connection, ``grpc`` the name of the status of a call that it ends, and ``retryable``
    whether the same request may succeed later, unchanged.
    """

    http: int
    ws_close: int
    grpc: str
    retryable: bool


ERRORS: dict[ErrorCode, ErrorSpec] = {
    ErrorCode.UNAUTHORIZED: ErrorSpec(401, 1008, "UNAUTHENTICATED", retryable=False),
    ErrorCode.ACCESS_DENIED: ErrorSpec(403, 1008, "PERMISSION_DENIED", retryable=False),
    ErrorCode.VALIDATION_ERROR: ErrorSpec(400, 1007, "INVALID_ARGUMENT", retryable=False),
    ErrorCode.PAYLOAD_TOO_LARGE: ErrorSpec(413, 1009, "RESOURCE_EXHAUSTED", retryable=False),
    ErrorCode.RATE_LIMIT_EXCEEDED: ErrorSpec(429, 1013, "RESOURCE_EXHAUSTED", retryable=True),
    ErrorCode.THREAD_BUSY: ErrorSpec(409, 1013, "ABORTED", retryable=True),
    ErrorCode.RUN_NOT_FOUND: ErrorSpec(404, 1008, "NOT_FOUND", retryable=False),
    ErrorCode.SHUTTING_DOWN: ErrorSpec(503, 1012, "UNAVAILABLE", retryable=True),
    ErrorCode.STORE_UNAVAILABLE: ErrorSpec(503, 1013, "UNAVAILABLE", retryable=True),
    ErrorCode.THREAD_NOT_FOUND: ErrorSpec(404, 1008, "NOT_FOUND", retryable=False),
    ErrorCode.INTERNAL_ERROR: ErrorSpec(500, 1011, "INTERNAL", retryable=True),
    ErrorCode.AGENT_ERROR: ErrorSpec(200, 1011, "UNKNOWN", retryable=False),
    ErrorCode.RUN_TIMEOUT: ErrorSpec(200, 1011, "DEADLINE_EXCEEDED", retryable=True),
    ErrorCode.RUN_LIMIT_EXCEEDED: ErrorSpec(200, 1011, "RESOURCE_EXHAUSTED", retryable=False),
    ErrorCode.RUN_LOST: ErrorSpec(200, 1011, "UNAVAILABLE", retryable=True),
    ErrorCode.MODEL_ERROR: ErrorSpec(200, 1011, "UNKNOWN", retryable=True),
    ErrorCode.MODEL_ACCESS_DENIED: ErrorSpec(200, 1011, "FAILED_PRECONDITION", retryable=False),
    ErrorCode.MODEL_NOT_FOUND: ErrorSpec(200, 1011, "FAILED_PRECONDITION", retryable=False),
    ErrorCode.MODEL_REJECTED: ErrorSpec(200, 1011, "FAILED_PRECONDITION", retryable=False),
    ErrorCode.MODEL_THROTTLED: ErrorSpec(200, 1011, "RESOURCE_EXHAUSTED", retryable=True),
    ErrorCode.MODEL_TIMEOUT: ErrorSpec(200, 1011, "DEADLINE_EXCEEDED", retryable=True),
    ErrorCode.MODEL_UNAVAILABLE: ErrorSpec(200, 1011, "UNAVAILABLE", retryable=True),
    ErrorCode.MODEL_CONTEXT_EXCEEDED: ErrorSpec(200, 1011, "OUT_OF_RANGE", retryable=False),
}


class AppError(Exception):
    """A failure that a client may see.

    Args:
        code: the row of ``TABLE`` it belongs to.
        message: one sentence for a person; safe to show to anybody.

    Raises:
        ValueError: there is no such code, or the message is no text that can be sent.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        if not isinstance(message, str):
            raise ValueError(f"the message of an AppError is a sentence, not a {type(message).__name__}")  # noqa: TRY004
        message.encode()
        super().__init__(message)
        self.code = ErrorCode(code)
        self.message = message

    @property
    def spec(self) -> ErrorSpec:
        """The error's columns: HTTP status, WebSocket close code, gRPC status, whether a retry can help."""
        return ERRORS[self.code]

    @property
    def is_caller_fault(self) -> bool:
        """Whether the caller can put it right; then a log needs no traceback."""
        return HTTPStatus.BAD_REQUEST <= self.spec.http < HTTPStatus.INTERNAL_SERVER_ERROR


def run_error(error: AppError, request_id: str) -> RunErrorEvent:
    """The RUN_ERROR that tells a client of ``error``, with the request id under which the log has the cause."""
    metadata = {"requestId": request_id, "retryable": error.spec.retryable}
    return RunErrorEvent(code=error.code, message=error.message, metadata=metadata)


def clip_message(words: str) -> str:
    """What is said of a mistake, where it says back what was sent: a caller knows that, and a log is not for it."""
    return words if len(words) <= MAX_QUOTED else f"{words[:MAX_QUOTED]}…"


class IllegalEvent(Exception):
    """An agent yielded something AG-UI forbids at this point. The text is for the log, not for clients."""
