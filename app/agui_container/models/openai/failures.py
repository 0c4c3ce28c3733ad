"""Failures of a model server: the error that clients see, and the policy of timeouts and retries.

Rule: no text of a server's answer reaches the client, because each error code has one fixed sentence. The server's text
is for the log. The tables are the whole policy: the HTTP status, or a word in the error's code or type, gives the error
code and decides if a retry can help.

Sources: the "Error codes" guide of OpenAI, and the error objects of the servers that ``parse_error`` names.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import from_json

from agui_container.models.retry_after import retry_after_words
from agui_container.models.tool_schemas import names_tool
from agui_container.protocol.errors import AppError, ErrorCode

MAX_LOGGED = 2_000
"""Characters of a server's answer that are logged."""

MAX_LOGGED_START = 200
"""Bytes that are logged of an answer in an unknown format."""

TEXTS: Mapping[ErrorCode, str] = {
    ErrorCode.MODEL_ERROR: "The model failed.",
    ErrorCode.MODEL_ACCESS_DENIED: "The model provider refused this server's credentials or account.",
    ErrorCode.MODEL_NOT_FOUND: "The model provider does not have this model at this address.",
    ErrorCode.MODEL_REJECTED: "The model provider did not accept the request.",
    ErrorCode.MODEL_THROTTLED: "The model is busy. Try again later.",
    ErrorCode.MODEL_TIMEOUT: "The model took too long to answer.",
    ErrorCode.MODEL_UNAVAILABLE: "The model cannot be reached.",
    ErrorCode.MODEL_CONTEXT_EXCEEDED: "The conversation is too long for the model.",
}


class ErrorBody(Struct, frozen=True):
    """Error object of a server.

    Attributes:
        codes: its code, type and status in lower case, separated by spaces.
        text: its message.
        status: the HTTP status that it names, if any.
        field: the field of the request that it names, if any.
        wait_seconds: the seconds that its words ask to wait, if any.
    """

    codes: str = ""
    text: str = ""
    status: int | None = None
    field: str = ""
    wait_seconds: float | None = None

    @property
    def reason(self) -> str:
        """The field that the error names, and its message."""
        return f"{self.field} {self.text}".strip()


class ModelFailure(AppError):
    """A failure of a model call.

    Args:
        code: one of ``MODEL_*``.
        message: text for the client; by default the sentence of ``code``.
        is_retryable: true if the same call may succeed soon.
        retry_after: seconds that the server asks to wait.
        error_body: the server's error object, for the log only.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        *,
        is_retryable: bool = False,
        retry_after: float | None = None,
        error_body: ErrorBody | None = None,
    ) -> None:
        super().__init__(code, message or TEXTS[code], wait_seconds=retry_after)
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.error_body = error_body or ErrorBody()

    def refuses(self, field: str) -> bool:
        """Return True if the server rejected this field. It may accept the request without it."""
        return self.code is ErrorCode.MODEL_REJECTED and field in self.error_body.reason


_BY_STATUS: Mapping[int, tuple[ErrorCode, bool]] = {
    401: (ErrorCode.MODEL_ACCESS_DENIED, False),
    402: (ErrorCode.MODEL_ACCESS_DENIED, False),
    403: (ErrorCode.MODEL_ACCESS_DENIED, False),
    404: (ErrorCode.MODEL_NOT_FOUND, False),
    405: (ErrorCode.MODEL_NOT_FOUND, False),
    408: (ErrorCode.MODEL_TIMEOUT, True),
    409: (ErrorCode.MODEL_UNAVAILABLE, True),
    410: (ErrorCode.MODEL_NOT_FOUND, False),
    413: (ErrorCode.MODEL_CONTEXT_EXCEEDED, False),
    425: (ErrorCode.MODEL_UNAVAILABLE, True),
    429: (ErrorCode.MODEL_THROTTLED, True),
    500: (ErrorCode.MODEL_ERROR, True),
    504: (ErrorCode.MODEL_TIMEOUT, True),
}

_BY_WORD: tuple[tuple[re.Pattern[str], ErrorCode, bool], ...] = (
    (re.compile("rate_limit|ratelimit|too_many|throttl"), ErrorCode.MODEL_THROTTLED, True),
    (re.compile("overload|unavailable|capacity|insufficient_system"), ErrorCode.MODEL_UNAVAILABLE, True),
    (re.compile("time_?out"), ErrorCode.MODEL_TIMEOUT, True),
    (re.compile("auth|api_key|permission|forbidden|billing"), ErrorCode.MODEL_ACCESS_DENIED, False),
    (re.compile("not_?found"), ErrorCode.MODEL_NOT_FOUND, False),
    (re.compile("invalid_|bad_?request|unsupported|content_"), ErrorCode.MODEL_REJECTED, False),
)

_NO_QUOTA = re.compile("insufficient_quota|insufficient_balance|billing_")
_TOO_LONG = re.compile(
    r"context_length|exceed_context|context_window|maximum context|context (length|window|size)"
    r"|prompt is too long|too many tokens|string_above_max|max_model_len",
    re.IGNORECASE,
)
_NEVER_TOO_LONG = (401, 402, 403, 404, 429)
_MIN_CLIENT_ERROR, _MIN_SERVER_ERROR, _END_OF_ERRORS = 400, 500, 600
_THREE_DIGITS = re.compile("[0-9]{3}")


def failure_of(status: int | None, error_body: ErrorBody, retry_after: float | None = None) -> ModelFailure:
    """Return the failure that an HTTP status and an error object mean.

    ``status`` is None for an error inside a stream; then the status in the error object counts, if there is one. So do
    the words of the error object, if the server is busy and ``retry_after``, the wait of its headers, is None.
    """
    status = status or error_body.status
    code, is_retryable = _code_and_retry(status, error_body.codes)
    if _NO_QUOTA.search(error_body.codes):
        code, is_retryable = ErrorCode.MODEL_ACCESS_DENIED, False
    elif names_tool(error_body.reason):
        pass  # a tool is too long, not the conversation
    elif status not in _NEVER_TOO_LONG and _TOO_LONG.search(f"{error_body.codes} {error_body.text}"):
        code, is_retryable = ErrorCode.MODEL_CONTEXT_EXCEEDED, False
    if retry_after is None and code is ErrorCode.MODEL_THROTTLED:
        retry_after = error_body.wait_seconds
    error_body = replace(error_body, status=status)
    return ModelFailure(code, is_retryable=is_retryable, retry_after=retry_after, error_body=error_body)


def _code_and_retry(status: int | None, codes: str) -> tuple[ErrorCode, bool]:
    if status is None:
        matches = ((code, is_retryable) for pattern, code, is_retryable in _BY_WORD if pattern.search(codes))
        return next(matches, (ErrorCode.MODEL_ERROR, True))
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _MIN_SERVER_ERROR:
        return ErrorCode.MODEL_UNAVAILABLE, True
    # Any other status is a redirect: the URL is wrong, and the API key must not be sent elsewhere.
    return (ErrorCode.MODEL_REJECTED if status >= _MIN_CLIENT_ERROR else ErrorCode.MODEL_NOT_FOUND), False


def parse_error_body(body: bytes) -> ErrorBody:
    """Parse the body of an error response, which may be JSON or plain text."""
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
    """Return the code of an error object if it is an HTTP error status, as a number or as text."""
    number = int(code) if isinstance(code, str) and _THREE_DIGITS.fullmatch(code) else code
    return number if type(number) is int and _MIN_CLIENT_ERROR <= number < _END_OF_ERRORS else None


def unreadable_answer(data: bytes) -> ModelFailure:
    """Return the failure of an answer in an unknown format. Its first bytes are for the log."""
    message = "The model sent an answer that cannot be read."
    return ModelFailure(ErrorCode.MODEL_ERROR, message, is_retryable=True, error_body=_start_of(data))


def web_page(data: bytes) -> ModelFailure:
    """Return the failure of a web page, which comes from a wrong address. Its first bytes are for the log."""
    return ModelFailure(ErrorCode.MODEL_NOT_FOUND, error_body=_start_of(data))


def _start_of(data: bytes) -> ErrorBody:
    return ErrorBody(text=data[:MAX_LOGGED_START].decode(errors="replace"))


def is_error_chunk(chunk: Mapping[str, object]) -> bool:
    """Return true if a chunk of a stream is an error object."""
    return bool(chunk.get("error")) or chunk.get("object") == "error" or ("message" in chunk and "choices" not in chunk)


class RetryPolicy(Struct, frozen=True):
    """Timeouts of a call, and retries of a call that has yielded no delta. All times are in seconds.

    Attributes:
        connect: limit for connecting.
        write: limit for sending one piece of the request.
        read: limit between two pieces of the answer; models may think for minutes before the first one.
        retries: largest number of retries of one call.
        first: wait before the first retry. It doubles with each retry and is shortened by up to half at random.
        longest: longest wait. If the server asks for more, the call is not retried.
        jitter: returns a random number from 0 to 1.
        sleep: coroutine function that waits.
    """

    connect: float = 10.0
    write: float = 60.0
    read: float = 300.0
    retries: int = 2
    first: float = 0.5
    longest: float = 20.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def wait(self, failure: ModelFailure, attempt: int) -> float | None:
        """Return the seconds to wait after ``attempt`` (from 0) has failed, or None if the call is not retried."""
        if not failure.is_retryable or attempt >= self.retries:
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= self.longest else None
        return min(self.first * 2.0**attempt, self.longest) * (1 - self.jitter() / 2)
