"""Failures of a Bedrock call: one table from the name of a failure to the error that clients see.

Names are Bedrock's error codes (lower-case initial inside a stream), class names of exceptions of botocore and urllib3,
and the faults that this package raises itself. Rule: every message is written here, and no text of an exception leaves
the server.

Source: the errors of ConverseStream in the Amazon Bedrock Runtime API reference.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from agui_container.models.failures import NO_ANSWER, ErrorBody, ModelFailure, retry_after
from agui_container.models.tool_schemas import names_tool
from agui_container.protocol.errors import ErrorCode


class Failure(Struct, frozen=True):
    """A row of the table: error code and message for clients. ``is_retryable`` is true if the call may be repeated."""

    code: ErrorCode
    message: str
    is_retryable: bool = False


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
_UNREADABLE = Failure(ErrorCode.MODEL_ERROR, "The model's answer could not be understood.")
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
    "ParserError": _UNREADABLE,
    "ResponseParserError": _UNREADABLE,
    # faults of this package
    "busy": Failure(
        ErrorCode.MODEL_THROTTLED, "The server is making too many model calls. Try again later.", is_retryable=True
    ),
    "incomplete": Failure(ErrorCode.MODEL_ERROR, "The model's answer ended before it was complete.", is_retryable=True),
    "empty": Failure(ErrorCode.MODEL_ERROR, NO_ANSWER, is_retryable=True),
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


def model_failure(error: BaseException) -> ModelFailure:
    found = failure_of(error)
    return ModelFailure(
        found.code,
        found.message,
        is_retryable=found.is_retryable,
        retry_after=wait_seconds_of(error),
        error_body=ErrorBody(text=str(error)),
    )


def failure_of(error: BaseException) -> Failure:
    """Unknown exceptions are failures without a retry."""
    response = _error_response(error)
    if response is not None:
        return _by_response(*response)
    return next((FAILURES[name] for name in _names(error) if name in FAILURES), _UNKNOWN)


def wait_seconds_of(error: BaseException) -> float | None:
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    return retry_after(metadata.get("HTTPHeaders", {}))


def _names(error: BaseException) -> Iterator[str]:
    if isinstance(error, StreamFault):
        yield error.name
    yield from (cls.__name__ for cls in type(error).__mro__)


def _error_response(error: BaseException) -> tuple[str, str, int] | None:
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
