"""Failures of model calls, and the one loop that retries them.

Rules: a call is retried only before its first delta, because a client cannot take back text that it has shown. No text
of a provider reaches the client, because each failure has one fixed sentence. The provider's text is for the log.
"""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from math import isfinite

from msgspec import Struct

from agui_container.models.tool_schemas import MAX_REFUSALS, names_tool
from agui_container.ports import Delta, MediaDroppedDelta, UsageDelta
from agui_container.protocol.errors import AppError, ErrorCode

TEXTS: Mapping[ErrorCode, str] = {
    ErrorCode.MODEL_ERROR: "The model failed.",
    ErrorCode.MODEL_ACCESS_DENIED: "This server has no credentials for the model, or the provider refused them.",
    ErrorCode.MODEL_NOT_FOUND: "The model provider does not have this model at this address.",
    ErrorCode.MODEL_REJECTED: "The model provider did not accept the request.",
    ErrorCode.MODEL_THROTTLED: "The model is busy. Try again later.",
    ErrorCode.MODEL_TIMEOUT: "The model took too long to answer.",
    ErrorCode.MODEL_UNAVAILABLE: "The model cannot be reached.",
    ErrorCode.MODEL_CONTEXT_EXCEEDED: "The conversation is too long for the model.",
}


Outcome = tuple[ErrorCode, bool]
"""Error code for clients, and True if the call may be repeated."""

BY_STATUS: Mapping[int, Outcome] = {
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

MIN_ERROR, MIN_SERVER_ERROR = 400, 500
"""First HTTP statuses of all errors, and of those of a server."""


def outcome_of_status(status: int) -> Outcome:
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status >= MIN_SERVER_ERROR:
        return ErrorCode.MODEL_UNAVAILABLE, True
    # Any other status is a redirect: the URL is wrong, and the API key must not be sent elsewhere.
    return (ErrorCode.MODEL_REJECTED if status >= MIN_ERROR else ErrorCode.MODEL_NOT_FOUND), False


_TOO_LONG = re.compile(
    r"context_length|exceed_context|context_window|maximum context|context (length|window|size)"
    r"|exceeds? (the )?(\w+ )*context|(input|prompt) is too long|too many (tokens|total text bytes|input tokens)"
    r"|string_above_max|max_model_len",
    re.IGNORECASE,
)


def is_too_long(error: str) -> bool:
    """Return True if an error is about the length of the conversation, and not about that of a tool."""
    return _TOO_LONG.search(error) is not None and not names_tool(error)


class ErrorBody(Struct, frozen=True):
    """Error object of a server. ``codes`` are its code, type and status in lower case, separated by spaces."""

    codes: str = ""
    text: str = ""
    status: int | None = None
    field: str = ""
    wait_seconds: float | None = None

    @property
    def reason(self) -> str:
        return f"{self.field} {self.text}".strip()


class ModelFailure(AppError):
    """A failure of a model call. ``error_body`` is for the log only."""

    def __init__(
        self,
        code: ErrorCode,
        *,
        is_retryable: bool = False,
        retry_after: float | None = None,
        error_body: ErrorBody | None = None,
    ) -> None:
        super().__init__(code, TEXTS[code], wait_seconds=retry_after)
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.error_body = error_body or ErrorBody()
        self.usage: Sequence[Delta] = ()

    def refuses(self, field: str) -> bool:
        """Return True if the server rejected this field. It may accept the request without it."""
        return self.code is ErrorCode.MODEL_REJECTED and field in self.error_body.reason


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


async def stream_with_retries(
    call: Callable[[], AsyncGenerator[Delta, None]],
    policy: RetryPolicy,
    adapt: Callable[[ModelFailure], bool],
    log: Callable[[ModelFailure, int, float | None], None],
) -> AsyncGenerator[Delta, None]:
    """Make a call until it succeeds or is not retried, and yield its deltas. Raises ``ModelFailure``."""
    attempt = changes = 0
    while True:
        has_output, is_changed = False, False
        try:
            async with aclosing(call()) as deltas:
                async for delta in deltas:
                    is_report = isinstance(delta, MediaDroppedDelta)
                    has_output = has_output or not isinstance(delta, MediaDroppedDelta | UsageDelta)
                    if not is_report or not (attempt or changes):
                        yield delta
        except ModelFailure as failure:
            is_changed = not has_output and changes < MAX_REFUSALS and adapt(failure)
            wait = 0.0 if is_changed else None if has_output else policy.wait(failure, attempt)
            log(failure, attempt, wait)
            if wait is None:
                for delta in failure.usage:
                    yield delta
                raise
        else:
            return
        if is_changed:
            changes += 1
            continue
        attempt += 1
        await policy.sleep(wait)


# --- time to wait -----------------------------------------------------------------------------------------------------

HEADERS = (("retry-after-ms", 0.001), ("retry-after", 1.0), ("llm_provider-retry-after", 1.0))
"""Headers and their units in seconds, of RFC 9110 without dates, OpenAI, Azure and LiteLLM, which adds a prefix."""

_WORDS = re.compile(  # of OpenAI, Groq, LiteLLM and Google
    r"(?:again in|retry in|retryDelay\W{1,8})\s*"
    r"(?:(?P<minutes>\d{1,4})m(?!s))?(?:(?P<number>\d{1,9}(?:\.\d{1,9})?)\s?(?P<unit>ms|s))?"
)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Names of headers are in lower case."""
    for name, unit in HEADERS:
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def retry_after_words(text: str) -> float | None:
    """Return the seconds that the text of an error response asks to wait, such as ``1m2.5s`` or ``120ms``, or None."""
    found = _WORDS.search(text)
    if found is None or not (found["minutes"] or found["number"]):
        return None
    unit = 0.001 if found["unit"] == "ms" else 1.0
    return 60.0 * int(found["minutes"] or 0) + unit * float(found["number"] or 0)
