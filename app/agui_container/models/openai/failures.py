"""What goes wrong at a server, as the client may see it and as a retry needs it.

Rule: no word of a server's answer reaches the client: each code has one sentence. What the server said is for the log.
The tables are the whole policy: a status or a word in the error's code or type gives the code, and whether trying again
can help.
"""

import re
from collections.abc import Mapping

from msgspec import Struct
from pydantic_core import from_json

from agui_container.protocol.errors import AppError, ErrorCode

MAX_LOGGED = 2_000

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
    """What a server said about a failure: ``words`` are its code and type in lower case, ``text`` its message."""

    words: str = ""
    text: str = ""
    status: int | None = None


class ModelFailure(AppError):
    """A failure of a model call.

    Args:
        retry: whether the same call may succeed soon.
        wait: the seconds that the server asked to wait.
        complaint: the server's own words, for the log only.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        *,
        retry: bool = False,
        wait: float | None = None,
        error_body: ErrorBody | None = None,
    ) -> None:
        super().__init__(code, message or TEXTS[code])
        self.retry = retry
        self.wait = wait
        self.error_body = error_body or ErrorBody()

    @property
    def refuses_stream_options(self) -> bool:
        """Whether the server does not know ``stream_options``: without them it may accept the request."""
        return self.code is ErrorCode.MODEL_REJECTED and "stream_options" in self.error_body.text


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
_NOT_ABOUT_LENGTH = (401, 402, 403, 404, 429)
_REFUSED, _FAILED, _BEYOND = 400, 500, 600
_DIGITS = re.compile("[0-9]{3}")


def failure_of(status: int | None, error_body: ErrorBody, wait: float | None = None) -> ModelFailure:
    """The failure that a status and an error object mean; an error inside a stream has no status of its own."""
    status = status or error_body.status
    code, retry = _row(status, error_body.words)
    if _NO_QUOTA.search(error_body.words):
        code, retry = ErrorCode.MODEL_ACCESS_DENIED, False
    elif status not in _NOT_ABOUT_LENGTH and _TOO_LONG.search(f"{error_body.words} {error_body.text}"):
        code, retry = ErrorCode.MODEL_CONTEXT_EXCEEDED, False
    return ModelFailure(code, retry=retry, wait=wait, error_body=ErrorBody(error_body.words, error_body.text, status))


def _row(status: int | None, words: str) -> tuple[ErrorCode, bool]:
    if status is None:
        found = ((code, retry) for pattern, code, retry in _BY_WORD if pattern.search(words))
        return next(found, (ErrorCode.MODEL_ERROR, True))
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _FAILED:
        return ErrorCode.MODEL_UNAVAILABLE, True
    # What is neither a refusal nor a failure is a redirect: the address is wrong, and a key must not follow it.
    return (ErrorCode.MODEL_REJECTED if status >= _REFUSED else ErrorCode.MODEL_NOT_FOUND), False


def parse_error_body(body: bytes) -> ErrorBody:
    """What the body of a refusal says, in any of the forms that servers use: JSON or not."""
    try:
        value: object = from_json(body)
    except ValueError:
        return ErrorBody(text=body[:MAX_LOGGED].decode(errors="replace"))
    return parse_error(value)


def parse_error(value: object) -> ErrorBody:
    """What an error object says: OpenAI's, vLLM's flat one, FastAPI's ``detail``, or Google's list of one."""
    if isinstance(value, list) and value:
        value = value[0]
    inner = value.get("error") or value if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return ErrorBody(text=str(inner)[:MAX_LOGGED])
    words = [inner.get(name) for name in ("code", "type", "status")]
    statuses = filter(None, map(_status_in, words))
    return ErrorBody(
        words=" ".join(word.lower() for word in words if isinstance(word, str))[:MAX_LOGGED],
        text=str(inner.get("message") or inner.get("detail") or inner)[:MAX_LOGGED],
        status=next(statuses, None),
    )


def _status_in(word: object) -> int | None:
    """The HTTP status that a code is, as a number or as text; servers have other codes, too."""
    number = int(word) if isinstance(word, str) and _DIGITS.fullmatch(word) else word
    return number if type(number) is int and _REFUSED <= number < _BEYOND else None


def is_error_chunk(chunk: Mapping[str, object]) -> bool:
    """Whether a chunk of a stream is an error object."""
    return bool(chunk.get("error")) or chunk.get("object") == "error" or ("message" in chunk and "choices" not in chunk)
