"""A refusal or a broken connection becomes a code, a safe sentence, a retry or none, and one line in the log."""

from collections.abc import Mapping

import pytest
from ag_ui.core import RunErrorEvent

from agui_container.assistant.assistant import Assistant
from agui_container.models import OpenAIModel, OpenAIOptions, RetryPolicy
from agui_container.models.failures import TEXTS, ModelFailure, retry_after, retry_after_words
from agui_container.models.openai.failures import failure_of, parse_error, parse_error_body
from agui_container.protocol.errors import ErrorCode
from agui_container.testing import run_agent
from tests.contexts import of_type, run_input
from tests.models.openai.conftest import KEY, Models
from tests.models.openai.server import refuses, says, sends, speaks, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in
from tests.models.wire import WireServer

pytestmark = pytest.mark.wire

STATUSES = {
    301: (ErrorCode.MODEL_NOT_FOUND, False),
    400: (ErrorCode.MODEL_REJECTED, False),
    401: (ErrorCode.MODEL_ACCESS_DENIED, False),
    404: (ErrorCode.MODEL_NOT_FOUND, False),
    408: (ErrorCode.MODEL_TIMEOUT, True),
    413: (ErrorCode.MODEL_CONTEXT_EXCEEDED, False),
    418: (ErrorCode.MODEL_REJECTED, False),
    429: (ErrorCode.MODEL_THROTTLED, True),
    500: (ErrorCode.MODEL_ERROR, True),
    503: (ErrorCode.MODEL_UNAVAILABLE, True),
    529: (ErrorCode.MODEL_UNAVAILABLE, True),
}
HTML = f"<html><body><h1>{KEY} is no good, /etc/passwd</h1></body></html>".encode()


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_has_a_code(status: int) -> None:
    failure = failure_of(status, parse_error_body(HTML))
    assert (failure.code, failure.is_retryable) == STATUSES[status]
    assert failure.message == TEXTS[failure.code]


@pytest.mark.parametrize("status", [400, 503])
async def test_a_refusal_is_logged_without_the_key(
    status: int, wire: WireServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = 3 if STATUSES[status][1] else 1
    wire.gives(*[refuses(status, {"error": {"message": f"your key {KEY} is no good"}})] * attempts)
    _, failure = await read_deltas(models().stream(PROMPT))
    assert failure is not None
    assert len(wire.requests) == len(caplog.records) == attempts
    assert models.naps.taken == [0.5, 1.0][: attempts - 1]
    assert "***" in caplog.text
    assert KEY not in caplog.text
    assert f"status={status}" in caplog.text


BODIES = {
    "openai length": (
        400,
        b'{"error":{"code":"context_length_exceeded","message":"x"}}',
        ErrorCode.MODEL_CONTEXT_EXCEEDED,
    ),
    "vllm length": (
        400,
        b'{"object":"error","message":"This model\'s maximum context length is 10 tokens","code":400}',
        ErrorCode.MODEL_CONTEXT_EXCEEDED,
    ),
    "llama.cpp length": (
        500,
        b'{"error":{"type":"exceed_context_size_error","code":500}}',
        ErrorCode.MODEL_CONTEXT_EXCEEDED,
    ),
    "no quota": (
        429,
        b'{"error":{"code":"insufficient_quota","message":"You exceeded"}}',
        ErrorCode.MODEL_ACCESS_DENIED,
    ),
    "cooldown of LiteLLM": (
        429,
        b'{"error":{"message":"No deployments available","type":"all_deployments_in_cooldown","code":"429"}}',
        ErrorCode.MODEL_UNAVAILABLE,
    ),
    "empty": (503, b"", ErrorCode.MODEL_UNAVAILABLE),
    "no utf-8": (400, b"\xff\xfe", ErrorCode.MODEL_REJECTED),
    "words about tokens are no length when throttled": (
        429,
        b'{"error":{"message":"too many tokens per minute"}}',
        ErrorCode.MODEL_THROTTLED,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_can_say_more_than_its_status(name: str) -> None:
    status, body, code = BODIES[name]
    assert failure_of(status, parse_error_body(body)).code is code


async def test_a_call_is_made_again_until_it_succeeds(wire: WireServer, models: Models) -> None:
    wire.gives(refuses(503), refuses(429, retry_after="7"), speaks("Hello"))
    assert await read_deltas(models().stream(PROMPT)) == ([{"text": "Hello"}, {"stop": "end"}], None)
    assert models.naps.taken == [0.5, 7.0]


WAITS: Mapping[str, tuple[Mapping[str, str], float | None]] = {
    "seconds": ({"retry-after": "3"}, 3.0),
    "milliseconds first": ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
    "date": ({"retry-after": "Fri, 01 Jan 2027 00:00:09 GMT", "date": "Fri, 01 Jan 2027 00:00:00 GMT"}, None),
    "LiteLLM's own": ({"retry-after": "2", "llm_provider-retry-after": "9"}, 2.0),
    "of LiteLLM's provider": ({"llm_provider-retry-after": "9"}, 9.0),
    "negative": ({"retry-after": "-1"}, None),
    "no number": ({"retry-after": "nan"}, None),
    "no end": ({"retry-after": "inf"}, None),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_is_read(name: str) -> None:
    headers, seconds = WAITS[name]
    assert retry_after(headers) == seconds


WORDS: Mapping[str, float | None] = {
    "Rate limit reached for m on tokens per min. Please try again in 20s. Visit": 20.0,
    "Please try again in 1m2.5s.": 62.5,
    "Please try again in 6m.": 360.0,
    "Please try again in 120ms.": 0.12,
    "You exceeded your current quota. Please retry in 30.5s.": 30.5,
    '{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}': 37.0,
    "No deployments available for selected model, Try again in 5 seconds. Passed model=m": 5.0,
    "Please try again in a while.": None,
    "Too many requests.": None,
}


@pytest.mark.parametrize("text", WORDS)
def test_a_wait_is_read_in_the_words_of_an_error(text: str) -> None:
    assert retry_after_words(text) == pytest.approx(WORDS[text])


@pytest.mark.parametrize("place", ["status", "stream"])
async def test_a_client_is_told_the_wait_that_a_server_named_in_words(
    place: str, wire: WireServer, models: Models
) -> None:
    said = {"error": {"message": "Rate limit reached. Please try again in 1m1.5s.", "code": "rate_limit_exceeded"}}
    answers = {
        "status": refuses(429, said),
        "stream": sends(*sse(said)),
    }
    wire.gives(answers[place])
    [error] = of_type(await run_agent(Assistant(models()), run_input("hi")), RunErrorEvent)
    assert (error.code, (error.metadata or {}).get("retryAfter")) == ("MODEL_THROTTLED", 62)


def test_waits_grow_to_a_limit_and_are_spread() -> None:
    failure = ModelFailure(ErrorCode.MODEL_THROTTLED, is_retryable=True)
    retry_policy = RetryPolicy(retries=9, jitter=lambda: 0.5)
    assert [retry_policy.wait(failure, attempt) for attempt in (0, 1, 8, 9)] == [0.375, 0.75, 15.0, None]
    assert retry_policy.wait(ModelFailure(ErrorCode.MODEL_REJECTED), 0) is None
    assert retry_policy.wait(ModelFailure(ErrorCode.MODEL_THROTTLED, is_retryable=True, retry_after=3600.0), 0) is None


async def test_a_call_that_has_begun_is_not_made_again(wire: WireServer, models: Models) -> None:
    broken = {"error": {"message": "no", "code": "rate_limit_exceeded"}}
    wire.gives(sends(*sse(says("a", usage={"prompt_tokens": 3, "completion_tokens": 1}), broken)))
    given, failure = await read_deltas(models().stream(PROMPT))
    assert text_in(given) == "a"
    assert "usage" in given[-1]
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_THROTTLED
    assert len(wire.requests) == 1


async def test_an_error_in_the_stream_before_the_first_delta_is_tried_again(wire: WireServer, models: Models) -> None:
    wire.gives(sends(*sse({"error": {"message": "no", "code": 503}})), speaks("Hello"))
    given, failure = await read_deltas(models().stream(PROMPT))
    assert failure is None
    assert text_in(given) == "Hello"


STREAMED: Mapping[str, tuple[Mapping[str, object], ErrorCode, bool]] = {
    "status as a number": ({"code": 401}, ErrorCode.MODEL_ACCESS_DENIED, False),
    "status as text": ({"code": "401", "type": "None"}, ErrorCode.MODEL_ACCESS_DENIED, False),
    "throttled as text": ({"code": "429", "type": "None"}, ErrorCode.MODEL_THROTTLED, True),
    "too great": ({"code": 1302, "type": "rate_limit_error"}, ErrorCode.MODEL_THROTTLED, True),
    "both": ({"code": 7, "status": 401}, ErrorCode.MODEL_ACCESS_DENIED, False),
    "yes": ({"code": True}, ErrorCode.MODEL_ERROR, True),
}


@pytest.mark.parametrize("name", STREAMED)
def test_only_a_status_among_the_codes_of_an_error_in_the_stream_counts_as_one(name: str) -> None:
    error, code, retry = STREAMED[name]
    failure = failure_of(None, parse_error({"error": {"message": "no", **error}}))
    assert (failure.code, failure.is_retryable) == (code, retry)


async def test_a_server_that_is_not_there_is_unavailable(wire: WireServer, models: Models) -> None:
    model = OpenAIModel("m", "http://127.0.0.1:1/v1", retry_policy=RetryPolicy(jitter=lambda: 0.0, sleep=models.naps))
    _, failure = await read_deltas(model.stream(PROMPT))
    await model.aclose()
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_UNAVAILABLE
    assert models.naps.taken == [0.5, 1.0]


async def test_a_silent_server_times_out_and_is_not_asked_again(wire: WireServer, models: Models) -> None:
    answer = sends(hold=True)
    wire.gives(answer)
    _, failure = await read_deltas(models(read=0.05).stream(PROMPT))
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_TIMEOUT
    await answer.gone.wait()
    assert len(wire.requests) == 1


async def test_usage_is_not_asked_for_where_that_is_refused(wire: WireServer, models: Models) -> None:
    wire.gives(refuses(400, {"error": {"message": "Unknown parameter: stream_options"}}), speaks("a"), speaks("b"))
    model = models()
    assert [text_in((await read_deltas(model.stream(PROMPT)))[0]) for _ in range(2)] == ["a", "b"]
    assert ["stream_options" in request.json for request in wire.requests] == [True, False, False]
    assert models.naps.taken == []


async def test_a_key_in_a_header_is_hidden_in_the_log_with_and_without_its_scheme(
    wire: WireServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    options = OpenAIOptions(headers={"api-key": "a-secret", "authorization": "Bearer B-secret", "x-empty": ""})
    wire.gives(refuses(401, {"error": {"message": "no: a-secret, Bearer B-secret, B-secret", "code": "B-secret"}}))
    await read_deltas(models(options=options).stream(PROMPT))
    assert "server_codes=*** server_text='no: ***, ***, ***'" in caplog.text
    assert "secret" not in caplog.text
