"""Failures of a Bedrock call: one table from the name of a failure to the code of the error that clients see.

Names are Bedrock's error codes (lower-case initial inside a stream), class names of exceptions of botocore and urllib3,
and the faults that this server raises itself.

Source: the errors of ConverseStream in the Amazon Bedrock Runtime API reference.
"""

import re
from collections.abc import Iterator

from agui_container.models.failures import (
    MIN_ERROR,
    ErrorBody,
    ModelFailure,
    Outcome,
    is_too_long,
    outcome_of_status,
    retry_after,
)
from agui_container.protocol.errors import ErrorCode


class StreamFault(Exception):
    """A fault that no library reports as an exception. ``name`` is a key of ``FAILURES``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


_ACCESS = ErrorCode.MODEL_ACCESS_DENIED, False
_NO_MODEL = ErrorCode.MODEL_NOT_FOUND, False
_REJECTED = ErrorCode.MODEL_REJECTED, False
_CONTEXT = ErrorCode.MODEL_CONTEXT_EXCEEDED, False
_THROTTLED = ErrorCode.MODEL_THROTTLED, True
_UNAVAILABLE = ErrorCode.MODEL_UNAVAILABLE, True
_SLOW_MODEL = ErrorCode.MODEL_TIMEOUT, True
_SILENT = ErrorCode.MODEL_TIMEOUT, False
_FAILED = ErrorCode.MODEL_ERROR, True
_UNKNOWN = ErrorCode.MODEL_ERROR, False

FAILURES: dict[str, Outcome] = {
    # Bedrock, before and inside the stream
    "AccessDeniedException": _ACCESS,
    "InternalServerException": _UNAVAILABLE,
    "ModelErrorException": _FAILED,
    "ModelNotReadyException": _UNAVAILABLE,
    "ModelStreamErrorException": _FAILED,
    "ModelTimeoutException": _SLOW_MODEL,
    "ResourceNotFoundException": _NO_MODEL,
    "ServiceQuotaExceededException": (ErrorCode.MODEL_THROTTLED, False),
    "ServiceUnavailableException": _UNAVAILABLE,
    "ThrottlingException": _THROTTLED,
    "TooManyRequestsException": _THROTTLED,
    "ValidationException": _REJECTED,
    # every AWS service
    "ExpiredTokenException": _ACCESS,
    "IncompleteSignatureException": _ACCESS,
    "InvalidSignatureException": _ACCESS,
    "MissingAuthenticationTokenException": _ACCESS,
    "UnrecognizedClientException": _ACCESS,
    # botocore, before there is a connection
    "CredentialRetrievalError": _ACCESS,
    "NoCredentialsError": _ACCESS,
    "PartialCredentialsError": _ACCESS,
    "SSOError": _ACCESS,
    "TokenRetrievalError": _ACCESS,
    "InvalidRegionError": _NO_MODEL,
    "ModuleNotFoundError": _NO_MODEL,
    "NoRegionError": _NO_MODEL,
    "ProfileNotFound": _NO_MODEL,
    "ParamValidationError": _REJECTED,
    # botocore and urllib3, connecting and reading
    "ConnectTimeoutError": _UNAVAILABLE,
    "ConnectionClosedError": _UNAVAILABLE,
    "ConnectionError": _UNAVAILABLE,
    "EndpointConnectionError": _UNAVAILABLE,
    "HTTPClientError": _UNAVAILABLE,
    "ReadTimeoutError": _SILENT,
    "HTTPError": _FAILED,
    "OSError": _FAILED,
    "ParserError": _UNKNOWN,
    "ResponseParserError": _UNKNOWN,
    # faults of this server
    "ThreadPoolBusy": _THROTTLED,
    "incomplete": _FAILED,
    "empty": _FAILED,
    "nameless_call": _FAILED,
    # stop reasons that are failures
    "malformed_model_output": _FAILED,
    "malformed_tool_use": _FAILED,
    "model_context_window_exceeded": _CONTEXT,
}

_WRONG_MODEL = re.compile(r"model identifier is invalid|on-demand throughput isn.t supported", re.IGNORECASE)
"""Words of a ValidationException about the model and not about the request."""


def model_failure(error: BaseException) -> ModelFailure:
    code, is_retryable = failure_of(error)
    body, wait = ErrorBody(text=str(error)), wait_seconds_of(error)
    return ModelFailure(code, is_retryable=is_retryable, retry_after=wait, error_body=body)


def failure_of(error: BaseException) -> Outcome:
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


def _by_response(code: str, text: str, status: int) -> Outcome:
    name = code[:1].upper() + code[1:]
    if name == "ValidationException" and is_too_long(text):
        return _CONTEXT
    if name == "ValidationException" and _WRONG_MODEL.search(text):
        return _NO_MODEL
    if name in FAILURES:
        return FAILURES[name]
    return outcome_of_status(status) if status >= MIN_ERROR else _UNKNOWN
