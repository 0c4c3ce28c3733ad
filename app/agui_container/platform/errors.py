"""Errors of the data plane: one table, and the two forms in which a caller gets them.

Rule: on protocol AGUI each error of an invocation is an SSE frame with RUN_ERROR, whatever its HTTP status. Operations
on sessions answer as AWS's REST APIs do, with JSON and the exception's name in ``x-amzn-ErrorType``.

Sources: devguide ``runtime-agui-protocol-contract``, and the exceptions of botocore's ``bedrock-agentcore``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One error of the platform.

    Attributes:
        exception: name in botocore's service model.
        status: HTTP status of an invocation on protocol AGUI.
        rest_status: HTTP status of every other operation.
        message: text for the caller, if there is nothing more exact to say.
    """

    exception: str
    status: int
    rest_status: int
    message: str


class PlatformError(Enum):
    """Errors of the platform by their AG-UI code."""

    UNAUTHORIZED = ErrorRow("UnauthorizedException", 401, 401, "Authentication required or invalid credentials")
    ACCESS_DENIED = ErrorRow("AccessDeniedException", 403, 403, "Insufficient permissions")
    VALIDATION_ERROR = ErrorRow("ValidationException", 400, 400, "Invalid request data")
    NOT_FOUND = ErrorRow("ResourceNotFoundException", 404, 404, "Resource not found")
    RATE_LIMIT_EXCEEDED = ErrorRow("ThrottlingException", 429, 429, "Too many requests")
    SESSION_BUSY = ErrorRow(
        "RetryableConflictException", 409, 409, "Session operation in progress, please retry your request"
    )
    SERVICE_QUOTA_EXCEEDED = ErrorRow("ServiceQuotaExceededException", 429, 402, "The quota maxVms is exceeded")
    AGENT_ERROR = ErrorRow(
        "RuntimeClientError", 200, 424, "Agent code failed. Check the logs of the container for more information."
    )
    INTERNAL_ERROR = ErrorRow("InternalServerException", 500, 500, "An internal error occurred")


class PlatformRefusal(Exception):
    """A request that the platform answers itself.

    Args:
        error: row of the table.
        message: text for the caller; None is that of the row.
        headers: further headers of the answer.
    """

    def __init__(
        self, error: PlatformError, message: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.error = error
        self.message = message or error.value.message
        self.headers = headers or {}
        super().__init__(error.name, self.message)


def run_error(refusal: PlatformRefusal, request_id: str, status: int | None = None) -> Response:
    """Return a refusal of an invocation or of a socket: a stream of one RUN_ERROR."""
    event = {"type": "RUN_ERROR", "code": refusal.error.name, "message": refusal.message}
    return Response(
        f"data: {json.dumps(event, separators=(',', ':'))}\n\n",
        refusal.error.value.status if status is None else status,
        {**answer_headers(refusal, request_id), "content-type": "text/event-stream"},
    )


def rest_error(refusal: PlatformRefusal, request_id: str) -> Response:
    """Return a refusal of any other operation, as botocore reads it."""
    return Response(
        json.dumps({"message": refusal.message}),
        refusal.error.value.rest_status,
        {**answer_headers(refusal, request_id), "content-type": "application/json"},
    )


def answer_headers(refusal: PlatformRefusal, request_id: str) -> Mapping[str, str]:
    """Return the headers of both forms. botocore takes the exception from ``x-amzn-ErrorType``."""
    return {"x-amzn-requestid": request_id, "x-amzn-errortype": refusal.error.value.exception, **refusal.headers}
