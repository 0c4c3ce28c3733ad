"""Error codes: one table that maps each code to HTTP, WebSocket and gRPC.

Rule: an error reaches a client only as an ``AppError``. Its message is written for people and never contains exception
text, paths or secrets, because those belong to the log. A new transport adds a column to the table, never a second
table.

Source of the codes: AgentCore's AG-UI contract defines UNAUTHORIZED to RATE_LIMIT_EXCEEDED and AGENT_ERROR. This
project defines the others.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http import HTTPStatus
from typing import Self

from ag_ui.core import RunErrorEvent

MAX_QUOTED = 500
"""Maximum number of characters of an error message that quotes client input."""


class ErrorCode(StrEnum):
    """Kinds of failure, as clients see them in ``RUN_ERROR.code``, and what each one is on every transport.

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

    def __new__(cls, name: str, http: int, ws_close: int, grpc: str, is_retryable: bool) -> Self:  # noqa: FBT001 - a row
        code = str.__new__(cls, name)
        code._value_, code.http, code.ws_close, code.grpc, code.is_retryable = name, http, ws_close, grpc, is_retryable
        return code

    UNAUTHORIZED = "UNAUTHORIZED", 401, 1008, "UNAUTHENTICATED", False
    ACCESS_DENIED = "ACCESS_DENIED", 403, 1008, "PERMISSION_DENIED", False
    VALIDATION_ERROR = "VALIDATION_ERROR", 400, 1007, "INVALID_ARGUMENT", False
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE", 413, 1009, "RESOURCE_EXHAUSTED", False
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED", 429, 1013, "RESOURCE_EXHAUSTED", True
    THREAD_BUSY = "THREAD_BUSY", 409, 1013, "ABORTED", True
    RUN_NOT_FOUND = "RUN_NOT_FOUND", 404, 1008, "NOT_FOUND", False
    SHUTTING_DOWN = "SHUTTING_DOWN", 503, 1012, "UNAVAILABLE", True
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE", 503, 1013, "UNAVAILABLE", True
    AUTH_UNAVAILABLE = "AUTH_UNAVAILABLE", 503, 1013, "UNAVAILABLE", True
    THREAD_NOT_FOUND = "THREAD_NOT_FOUND", 404, 1008, "NOT_FOUND", False
    FILE_NOT_FOUND = "FILE_NOT_FOUND", 404, 1008, "NOT_FOUND", False
    INTERNAL_ERROR = "INTERNAL_ERROR", 500, 1011, "INTERNAL", True
    AGENT_ERROR = "AGENT_ERROR", 200, 1011, "UNKNOWN", False
    RUN_TIMEOUT = "RUN_TIMEOUT", 200, 1011, "DEADLINE_EXCEEDED", True
    RUN_LIMIT_EXCEEDED = "RUN_LIMIT_EXCEEDED", 200, 1011, "RESOURCE_EXHAUSTED", False
    RUN_LOST = "RUN_LOST", 200, 1011, "UNAVAILABLE", True
    MODEL_ERROR = "MODEL_ERROR", 200, 1011, "UNKNOWN", True
    MODEL_ACCESS_DENIED = "MODEL_ACCESS_DENIED", 200, 1011, "FAILED_PRECONDITION", False
    MODEL_NOT_FOUND = "MODEL_NOT_FOUND", 200, 1011, "FAILED_PRECONDITION", False
    MODEL_REJECTED = "MODEL_REJECTED", 200, 1011, "FAILED_PRECONDITION", False
    MODEL_THROTTLED = "MODEL_THROTTLED", 200, 1011, "RESOURCE_EXHAUSTED", True
    MODEL_TIMEOUT = "MODEL_TIMEOUT", 200, 1011, "DEADLINE_EXCEEDED", True
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE", 200, 1011, "UNAVAILABLE", True
    MODEL_CONTEXT_EXCEEDED = "MODEL_CONTEXT_EXCEEDED", 200, 1011, "OUT_OF_RANGE", False


class AppError(Exception):
    """A failure that a client may see.

    Args:
        code: row of the table.
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
        self.code = ErrorCode(code)  # type: ignore[call-arg] # mypy takes the columns of the table for arguments
        self.message = message
        self.wait_seconds = None if wait_seconds is None else max(1, math.ceil(wait_seconds))

    @property
    def is_caller_fault(self) -> bool:
        """True if the caller can correct the request (HTTP status 4xx). The log needs no traceback then."""
        return HTTPStatus.BAD_REQUEST <= self.code.http < HTTPStatus.INTERNAL_SERVER_ERROR


def run_error(error: AppError, request_id: str | None = None) -> RunErrorEvent:
    """Return the RUN_ERROR event for ``error``. Its metadata has the request id, by which the log can be searched.

    A run that another process ends has no request there.
    ``retryAfter`` in the metadata is in seconds, as in the header of HTTP.
    """
    metadata: dict[str, object] = {} if request_id is None else {"requestId": request_id}
    metadata["retryable"] = error.code.is_retryable
    if error.wait_seconds is not None:
        metadata["retryAfter"] = error.wait_seconds
    return RunErrorEvent(code=error.code, message=error.message, metadata=metadata)


def clip_message(text: str) -> str:
    """Shorten an error message that quotes client input to ``MAX_QUOTED`` characters."""
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def shutting_down() -> AppError:
    return AppError(ErrorCode.SHUTTING_DOWN, "The server is shutting down.")


def validation_error(message: str) -> AppError:
    return AppError(ErrorCode.VALIDATION_ERROR, clip_message(message))


@contextmanager
def suppress_errors(*codes: ErrorCode) -> Iterator[None]:
    """Suppress an ``AppError`` with one of these codes, as ``contextlib.suppress`` does with exceptions."""
    try:
        yield
    except AppError as error:
        if error.code not in codes:
            raise
