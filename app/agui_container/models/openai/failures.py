"""Failures of a model server: the error that clients see.

Rule: the tables are the whole policy: the HTTP status, or a word in the error's code or type, gives the error code and
decides if a retry can help.

Sources: the "Error codes" guide of OpenAI, and the error objects of the servers that ``parse_error`` names.
"""

import re
from collections.abc import Mapping

from msgspec.structs import replace
from pydantic_core import from_json

from agui_container.models.failures import (
    MIN_ERROR,
    ErrorBody,
    ModelFailure,
    Outcome,
    is_too_long,
    outcome_of_status,
    retry_after_words,
)
from agui_container.protocol.errors import ErrorCode

MAX_LOGGED = 2_000
"""Characters of a server's answer that are logged."""

MAX_LOGGED_START = 200
"""Characters that are logged of an answer in an unknown format."""

_BY_WORD: tuple[tuple[re.Pattern[str], ErrorCode, bool], ...] = (
    (re.compile("rate_limit|ratelimit|too_many|throttl"), ErrorCode.MODEL_THROTTLED, True),
    (re.compile("overload|unavailable|capacity|insufficient_system"), ErrorCode.MODEL_UNAVAILABLE, True),
    (re.compile("time_?out"), ErrorCode.MODEL_TIMEOUT, True),
    (re.compile("auth|api_key|permission|forbidden|billing"), ErrorCode.MODEL_ACCESS_DENIED, False),
    (re.compile("not_?found"), ErrorCode.MODEL_NOT_FOUND, False),
    (re.compile("invalid_|bad_?request|unsupported|content_"), ErrorCode.MODEL_REJECTED, False),
)

_COOLDOWN = "all_deployments_in_cooldown"
"""Type of LiteLLM's error while it rests all deployments of a model. Its status is 429."""
_NO_QUOTA = re.compile("insufficient_quota|insufficient_balance|billing_")
_BUSY = (ErrorCode.MODEL_THROTTLED, ErrorCode.MODEL_UNAVAILABLE)
_NEVER_TOO_LONG = (401, 402, 403, 404, 429)
_END_OF_ERRORS = 600
_THREE_DIGITS = re.compile("[0-9]{3}")


def failure_of(status: int | None, error_body: ErrorBody, retry_after: float | None = None) -> ModelFailure:
    """Return the failure that an HTTP status and an error object mean.

    ``status`` is None for an error inside a stream; then the status in the error object counts, if there is one. So do
    the words of the error object, if the server is busy and ``retry_after``, the wait of its headers, is None.
    """
    status = status or error_body.status
    code, is_retryable = _code_and_retry(status, error_body.codes)
    if _COOLDOWN in error_body.codes:
        code, is_retryable = ErrorCode.MODEL_UNAVAILABLE, True
    elif _NO_QUOTA.search(error_body.codes):
        code, is_retryable = ErrorCode.MODEL_ACCESS_DENIED, False
    elif status not in _NEVER_TOO_LONG and is_too_long(f"{error_body.codes} {error_body.reason}"):
        code, is_retryable = ErrorCode.MODEL_CONTEXT_EXCEEDED, False
    if retry_after is None and is_retryable and code in _BUSY:
        retry_after = error_body.wait_seconds
    error_body = replace(error_body, status=status)
    return ModelFailure(code, is_retryable=is_retryable, retry_after=retry_after, error_body=error_body)


def _code_and_retry(status: int | None, codes: str) -> Outcome:
    if status is None:
        matches = ((code, is_retryable) for pattern, code, is_retryable in _BY_WORD if pattern.search(codes))
        return next(matches, (ErrorCode.MODEL_ERROR, True))
    return outcome_of_status(status)


def parse_error_body(body: bytes) -> ErrorBody:
    try:
        value: object = from_json(body)
    except ValueError:
        return _error_text(body.decode(errors="replace"))
    return parse_error(value)


def parse_error(value: object) -> ErrorBody:
    """Parse an error object: OpenAI's, vLLM's flat one, FastAPI's ``detail``, or Google's list with one error."""
    if isinstance(value, list) and value:
        value = value[0]
    inner = value.get("error") or value if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return _error_text(str(inner))
    codes = [inner.get(name) for name in ("code", "type", "status")]
    statuses = filter(None, map(_http_status, codes))
    return ErrorBody(
        codes=" ".join(code.lower() for code in codes if isinstance(code, str))[:MAX_LOGGED],
        text=str(inner.get("message") or inner.get("detail") or inner)[:MAX_LOGGED],
        status=next(statuses, None),
        field=str(inner.get("param") or "")[:MAX_LOGGED_START],
        wait_seconds=retry_after_words(str(inner)),
    )


def _error_text(text: str) -> ErrorBody:
    return ErrorBody(text=text[:MAX_LOGGED], wait_seconds=retry_after_words(text))


def _http_status(code: object) -> int | None:
    number = int(code) if isinstance(code, str) and _THREE_DIGITS.fullmatch(code) else code
    return number if type(number) is int and MIN_ERROR <= number < _END_OF_ERRORS else None


def unreadable_answer(text: str) -> ModelFailure:
    return ModelFailure(ErrorCode.MODEL_ERROR, is_retryable=True, error_body=ErrorBody(text=text[:MAX_LOGGED_START]))


def web_page(data: bytes) -> ModelFailure:
    """Return the failure of a web page, which comes from a wrong address. Its first bytes are for the log."""
    return ModelFailure(ErrorCode.MODEL_NOT_FOUND, error_body=ErrorBody(text=data.decode(errors="replace")))


def is_error_chunk(chunk: Mapping[str, object]) -> bool:
    return bool(chunk.get("error")) or chunk.get("object") == "error" or ("message" in chunk and "choices" not in chunk)
