"""Errors of the data plane: one table, and the two forms in which a caller gets them.

Rule: on protocol AGUI each error of an invocation is an SSE frame with RUN_ERROR, whatever its HTTP status. Operations
on sessions answer as AWS's REST APIs do, with JSON. botocore takes the exception from ``x-amzn-ErrorType``.

Sources: devguide ``runtime-agui-protocol-contract``, and the exceptions of botocore's ``bedrock-agentcore``.
"""

import json
from enum import Enum
from typing import NamedTuple

from starlette.responses import Response


class ErrorRow(NamedTuple):
    """One error: botocore's exception, the status of an invocation and of any other operation, and the usual text."""

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
    """A request that the platform answers itself. Without a message it has that of the table."""

    def __init__(self, error: PlatformError, message: str | None = None) -> None:
        self.error = error
        self.message = message or error.value.message
        self.headers = {"x-amzn-errortype": error.value.exception}
        super().__init__(error.name, self.message)


def run_error(refusal: PlatformRefusal, request_id: str, status: int | None = None) -> Response:
    """Return a refusal of an invocation or of a socket: a stream of one RUN_ERROR."""
    event = {"type": "RUN_ERROR", "code": refusal.error.name, "message": refusal.message}
    frame = f"data: {json.dumps(event, separators=(',', ':'))}\n\n"
    headers = {**refusal.headers, "x-amzn-requestid": request_id, "content-type": "text/event-stream"}
    return Response(frame, refusal.error.value.status if status is None else status, headers)


def rest_error(refusal: PlatformRefusal, request_id: str) -> Response:
    """Return a refusal of any other operation, as botocore reads it."""
    headers = {**refusal.headers, "x-amzn-requestid": request_id, "content-type": "application/json"}
    return Response(json.dumps({"message": refusal.message}), refusal.error.value.rest_status, headers)
