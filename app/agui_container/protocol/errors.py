"""Error codes and the one table that maps each code to HTTP, WebSocket and gRPC.

Rule: an error reaches a client only as an ``AppError``. Its message is written for people and never contains exception
text, paths or secrets, because those belong to the log. A new transport adds a column to the table, never a second
table.

Source of the codes: AgentCore's AG-UI contract defines UNAUTHORIZED to RATE_LIMIT_EXCEEDED and AGENT_ERROR. This
project defines the others.
"""

import math
from enum import StrEnum
from http import HTTPStatus

from ag_ui.core import RunErrorEvent
from msgspec import Struct


class ErrorCode(StrEnum):
    """Kinds of failure, as clients see them in ``RUN_ERROR.code``."""

    UNAUTHORIZED = "UNAUTHORIZED"
    ACCESS_DENIED = "ACCESS_DENIED"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    THREAD_BUSY = "THREAD_BUSY"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    AUTH_UNAVAILABLE = "AUTH_UNAVAILABLE"
    THREAD_NOT_FOUND = "THREAD_NOT_FOUND"
    FILE_NOT_FOUND = "FILE_NOT_FOUND"
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
"""Maximum number of characters of an error message that quotes client input."""


class ErrorSpec(Struct, frozen=True):
    """Representation of one error code on each transport.

    Attributes:
        http: HTTP status before the event stream begins. It is 200 for errors that only occur inside a stream.
        ws_close: WebSocket close code, used if the error ends the connection.
        grpc: name of the gRPC status, used if the error ends the call.
        is_retryable: True if the same request may succeed later without a change.
    """

    http: int
    ws_close: int
    grpc: str
    is_retryable: bool


ERRORS: dict[ErrorCode, ErrorSpec] = {
    ErrorCode.UNAUTHORIZED: ErrorSpec(401, 1008, "UNAUTHENTICATED", is_retryable=False),
    ErrorCode.ACCESS_DENIED: ErrorSpec(403, 1008, "PERMISSION_DENIED", is_retryable=False),
    ErrorCode.VALIDATION_ERROR: ErrorSpec(400, 1007, "INVALID_ARGUMENT", is_retryable=False),
    ErrorCode.PAYLOAD_TOO_LARGE: ErrorSpec(413, 1009, "RESOURCE_EXHAUSTED", is_retryable=False),
    ErrorCode.RATE_LIMIT_EXCEEDED: ErrorSpec(429, 1013, "RESOURCE_EXHAUSTED", is_retryable=True),
    ErrorCode.THREAD_BUSY: ErrorSpec(409, 1013, "ABORTED", is_retryable=True),
    ErrorCode.RUN_NOT_FOUND: ErrorSpec(404, 1008, "NOT_FOUND", is_retryable=False),
    ErrorCode.SHUTTING_DOWN: ErrorSpec(503, 1012, "UNAVAILABLE", is_retryable=True),
    ErrorCode.STORE_UNAVAILABLE: ErrorSpec(503, 1013, "UNAVAILABLE", is_retryable=True),
    ErrorCode.AUTH_UNAVAILABLE: ErrorSpec(503, 1013, "UNAVAILABLE", is_retryable=True),
    ErrorCode.THREAD_NOT_FOUND: ErrorSpec(404, 1008, "NOT_FOUND", is_retryable=False),
    ErrorCode.FILE_NOT_FOUND: ErrorSpec(404, 1008, "NOT_FOUND", is_retryable=False),
    ErrorCode.INTERNAL_ERROR: ErrorSpec(500, 1011, "INTERNAL", is_retryable=True),
    ErrorCode.AGENT_ERROR: ErrorSpec(200, 1011, "UNKNOWN", is_retryable=False),
    ErrorCode.RUN_TIMEOUT: ErrorSpec(200, 1011, "DEADLINE_EXCEEDED", is_retryable=True),
    ErrorCode.RUN_LIMIT_EXCEEDED: ErrorSpec(200, 1011, "RESOURCE_EXHAUSTED", is_retryable=False),
    ErrorCode.RUN_LOST: ErrorSpec(200, 1011, "UNAVAILABLE", is_retryable=True),
    ErrorCode.MODEL_ERROR: ErrorSpec(200, 1011, "UNKNOWN", is_retryable=True),
    ErrorCode.MODEL_ACCESS_DENIED: ErrorSpec(200, 1011, "FAILED_PRECONDITION", is_retryable=False),
    ErrorCode.MODEL_NOT_FOUND: ErrorSpec(200, 1011, "FAILED_PRECONDITION", is_retryable=False),
    ErrorCode.MODEL_REJECTED: ErrorSpec(200, 1011, "FAILED_PRECONDITION", is_retryable=False),
    ErrorCode.MODEL_THROTTLED: ErrorSpec(200, 1011, "RESOURCE_EXHAUSTED", is_retryable=True),
    ErrorCode.MODEL_TIMEOUT: ErrorSpec(200, 1011, "DEADLINE_EXCEEDED", is_retryable=True),
    ErrorCode.MODEL_UNAVAILABLE: ErrorSpec(200, 1011, "UNAVAILABLE", is_retryable=True),
    ErrorCode.MODEL_CONTEXT_EXCEEDED: ErrorSpec(200, 1011, "OUT_OF_RANGE", is_retryable=False),
}


class AppError(Exception):
    """A failure that a client may see.

    Args:
        code: key of ``ERRORS``.
        message: one sentence for a person, safe to show to anybody.
        wait_seconds: seconds after which the same request may succeed, if they are known.

    Raises:
        ValueError: the code does not exist, or the message is not a string or cannot be encoded as UTF-8.
    """

    def __init__(self, code: ErrorCode, message: str, *, wait_seconds: float | None = None) -> None:
        if not isinstance(message, str):
            raise ValueError(f"the message of an AppError is a sentence, not a {type(message).__name__}")  # noqa: TRY004
        message.encode()
        super().__init__(message)
        self.code = ErrorCode(code)
        self.message = message
        self.wait_seconds = None if wait_seconds is None else max(1, math.ceil(wait_seconds))

    @property
    def spec(self) -> ErrorSpec:
        return ERRORS[self.code]

    @property
    def is_caller_fault(self) -> bool:
        """True if the caller can correct the request (HTTP status 4xx). The log needs no traceback then."""
        return HTTPStatus.BAD_REQUEST <= self.spec.http < HTTPStatus.INTERNAL_SERVER_ERROR


def run_error(error: AppError, request_id: str) -> RunErrorEvent:
    """Return the RUN_ERROR event for ``error``. Its metadata has the request id, by which the log can be searched.

    ``retryAfter`` in the metadata is in seconds, as in the header of HTTP.
    """
    metadata: dict[str, object] = {"requestId": request_id, "retryable": error.spec.is_retryable}
    if error.wait_seconds is not None:
        metadata["retryAfter"] = error.wait_seconds
    return RunErrorEvent(code=error.code, message=error.message, metadata=metadata)


def clip_message(text: str) -> str:
    """Shorten an error message that quotes client input to ``MAX_QUOTED`` characters."""
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def shutting_down() -> AppError:
    return AppError(ErrorCode.SHUTTING_DOWN, "The server is shutting down.")
