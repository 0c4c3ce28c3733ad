"""Failures of a Bedrock call: one table from the name of a failure to the error that clients see, and the retries.

Names are Bedrock's error codes (lower-case initial inside a stream), class names of exceptions of botocore and urllib3,
and the faults that this package raises itself. Rule: every message is written here, and no text of an exception leaves
the server. A call is retried only before its first delta, because a client cannot take back text that it has shown.

Source: the errors of ConverseStream in the Amazon Bedrock Runtime API reference.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator

from msgspec import Struct

from agui_container.models.retry_after import retry_after
from agui_container.models.tool_schemas import names_tool
from agui_container.protocol.errors import AppError, ErrorCode


class Failure(Struct, frozen=True):
    """A row of the table: error code and message for clients. ``is_retryable`` is true if the call may be repeated."""

    code: ErrorCode
    message: str
    is_retryable: bool = False

    def error(self, wait_seconds: float | None = None) -> AppError:
        """Return the failure as the error that the model raises, with the time that Bedrock asks to wait, if any."""
        return AppError(self.code, self.message, wait_seconds=wait_seconds)


class StreamFault(Exception):
    """A fault that no library reports as an exception. ``name`` is a key of ``FAILURES``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


_ACCESS = Failure(ErrorCode.MODEL_ACCESS_DENIED, "The server may not use this model.")
_CREDENTIALS = Failure(ErrorCode.MODEL_ACCESS_DENIED, "The server has no valid credentials for the model.")
_NO_MODEL = Failure(ErrorCode.MODEL_NOT_FOUND, "The model does not exist, or not in this region.")
_SETUP = Failure(ErrorCode.MODEL_NOT_FOUND, "The server is not set up to reach the model.")
_REJECTED = Failure(ErrorCode.MODEL_REJECTED, "The model refused the request as invalid.")
_CONTEXT = Failure(ErrorCode.MODEL_CONTEXT_EXCEEDED, "The conversation is longer than the model can read.")
_THROTTLED = Failure(
    ErrorCode.MODEL_THROTTLED, "The model is receiving too many requests. Try again later.", is_retryable=True
)
_QUOTA = Failure(ErrorCode.MODEL_THROTTLED, "The quota for the model is used up. Try again later.")
_NOT_READY = Failure(ErrorCode.MODEL_UNAVAILABLE, "The model is not ready yet. Try again later.", is_retryable=True)
_UNAVAILABLE = Failure(
    ErrorCode.MODEL_UNAVAILABLE, "The model service is not available. Try again later.", is_retryable=True
)
_INTERNAL = Failure(
    ErrorCode.MODEL_UNAVAILABLE, "The model service had an internal error. Try again later.", is_retryable=True
)
_UNREACHABLE = Failure(
    ErrorCode.MODEL_UNAVAILABLE, "The model service cannot be reached. Try again later.", is_retryable=True
)
_SLOW_MODEL = Failure(ErrorCode.MODEL_TIMEOUT, "The model took too long to answer.", is_retryable=True)
_SILENT = Failure(ErrorCode.MODEL_TIMEOUT, "The model stopped answering.")
_FAILED = Failure(ErrorCode.MODEL_ERROR, "The model failed while answering.", is_retryable=True)
_BROKEN = Failure(ErrorCode.MODEL_ERROR, "The model's answer was cut off.", is_retryable=True)
_MALFORMED = Failure(ErrorCode.MODEL_ERROR, "The model's answer could not be understood.", is_retryable=True)
_UNKNOWN = Failure(ErrorCode.MODEL_ERROR, "The model call failed.")

FAILURES: dict[str, Failure] = {
    # Bedrock, before and inside the stream
    "AccessDeniedException": _ACCESS,
    "InternalServerException": _INTERNAL,
    "ModelErrorException": _FAILED,
    "ModelNotReadyException": _NOT_READY,
    "ModelStreamErrorException": _FAILED,
    "ModelTimeoutException": _SLOW_MODEL,
    "ResourceNotFoundException": _NO_MODEL,
    "ServiceQuotaExceededException": _QUOTA,
    "ServiceUnavailableException": _UNAVAILABLE,
    "ThrottlingException": _THROTTLED,
    "TooManyRequestsException": _THROTTLED,
    "ValidationException": _REJECTED,
    # every AWS service
    "ExpiredTokenException": _CREDENTIALS,
    "IncompleteSignatureException": _CREDENTIALS,
    "InvalidSignatureException": _CREDENTIALS,
    "MissingAuthenticationTokenException": _CREDENTIALS,
    "UnrecognizedClientException": _CREDENTIALS,
    # botocore, before there is a connection
    "CredentialRetrievalError": _CREDENTIALS,
    "NoCredentialsError": _CREDENTIALS,
    "PartialCredentialsError": _CREDENTIALS,
    "SSOError": _CREDENTIALS,
    "TokenRetrievalError": _CREDENTIALS,
    "InvalidRegionError": _SETUP,
    "ModuleNotFoundError": _SETUP,
    "NoRegionError": _SETUP,
    "ProfileNotFound": _SETUP,
    "ParamValidationError": _REJECTED,
    # botocore and urllib3, connecting and reading
    "ConnectTimeoutError": _UNREACHABLE,
    "ConnectionClosedError": _UNREACHABLE,
    "ConnectionError": _UNREACHABLE,
    "EndpointConnectionError": _UNREACHABLE,
    "HTTPClientError": _UNREACHABLE,
    "ReadTimeoutError": _SILENT,
    "HTTPError": _BROKEN,
    "OSError": _BROKEN,
    "ParserError": _BROKEN,
    "ResponseParserError": _BROKEN,
    # faults of this package
    "busy": Failure(
        ErrorCode.MODEL_THROTTLED, "The server is making too many model calls. Try again later.", is_retryable=True
    ),
    "incomplete": Failure(ErrorCode.MODEL_ERROR, "The model's answer ended before it was complete.", is_retryable=True),
    "nameless_call": _MALFORMED,
    # stop reasons that are failures
    "malformed_model_output": _MALFORMED,
    "malformed_tool_use": Failure(
        ErrorCode.MODEL_ERROR, "The model made a tool call that cannot be read.", is_retryable=True
    ),
    "model_context_window_exceeded": _CONTEXT,
}

_BY_STATUS = {401: _CREDENTIALS, 403: _ACCESS, 404: _NO_MODEL, 408: _SLOW_MODEL, 413: _CONTEXT, 429: _THROTTLED}

_BY_TEXT: dict[str, tuple[tuple[re.Pattern[str], Failure], ...]] = {
    "ValidationException": (
        (
            re.compile(
                r"input is too long|prompt is too long|too many (total text bytes|input tokens)"
                r"|exceeds? (the )?(\w+ )*context|maximum context length",
                re.IGNORECASE,
            ),
            _CONTEXT,
        ),
        (re.compile(r"model identifier is invalid|on-demand throughput isn.t supported", re.IGNORECASE), _NO_MODEL),
    )
}
"""Failures with the same code that only the text of Bedrock's message distinguishes."""


def failure_of(error: BaseException) -> Failure:
    """Return the failure that an exception means. Unknown exceptions are failures without a retry."""
    response = _error_response(error)
    if response is not None:
        return _by_response(*response)
    return next((FAILURES[name] for name in _names(error) if name in FAILURES), _UNKNOWN)


def wait_seconds_of(error: BaseException) -> float | None:
    """Return the seconds that Bedrock asks to wait, or None."""
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    return retry_after(metadata.get("HTTPHeaders", {}))


def _names(error: BaseException) -> Iterator[str]:
    if isinstance(error, StreamFault):
        yield error.name
    yield from (cls.__name__ for cls in type(error).__mro__)


def _error_response(error: BaseException) -> tuple[str, str, int] | None:
    """Return code, text and HTTP status from a ClientError of botocore, or None for other exceptions."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    details = response.get("Error", {})
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return str(details.get("Code", "")), str(details.get("Message", "")), status if isinstance(status, int) else 0


def _by_response(code: str, text: str, status: int) -> Failure:
    name = code[:1].upper() + code[1:]
    for pattern, failure in () if names_tool(text) else _BY_TEXT.get(name, ()):  # a tool is too long, not the input
        if pattern.search(text):
            return failure
    return FAILURES.get(name) or _by_status(status)


def _by_status(status: int) -> Failure:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:  # noqa: PLR2004 - first status of the class
        return _INTERNAL
    return _REJECTED if status >= 400 else _UNKNOWN  # noqa: PLR2004


# --- retries ----------------------------------------------------------------------------------------------------------

Pause = Callable[[int], Awaitable[None]]
"""Coroutine function that waits after attempt number N (from 1) has failed."""

FIRST_PAUSE, MAX_PAUSE = 0.5, 8.0
"""Seconds."""


async def backoff(attempt: int) -> None:
    """Wait twice as long after each attempt, shortened by up to half at random."""
    pause = min(FIRST_PAUSE * 2 ** (attempt - 1), MAX_PAUSE)
    await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, hides nothing


def may_retry(failure: Failure, attempt: int, max_attempts: int, *, has_output: bool) -> bool:
    """Return True if a call may be repeated after ``attempt`` (from 1) has failed."""
    return failure.is_retryable and not has_output and attempt < max_attempts
