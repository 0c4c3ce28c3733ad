"""Wherever a server dies, the failure is clear, as it is for an answer that is no stream."""

import pytest

from agui_container.models.failures import ModelFailure
from agui_container.protocol.errors import ErrorCode
from tests.models.openai.conftest import Models
from tests.models.openai.server import says, sends, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in
from tests.models.wire import INCOMPLETE, WireResponse, WireServer

pytestmark = pytest.mark.wire


async def test_a_server_that_dies_anywhere_is_unavailable(wire: WireServer, models: Models) -> None:
    stream = b"".join(sse(says("a"), says("b", "stop"), "[DONE]"))
    first, second = (len(b"".join(sse(says("a"), says("b", "stop"))[:number])) for number in (1, 2))
    model = models()
    for cut in (*range(1, len(stream), 3), second - 1, second, len(stream)):
        wire.gives(*[sends(stream[:cut], cut=INCOMPLETE)] * 3)
        given, failure = await read_deltas(model.stream(PROMPT))
        assert text_in(given) == ("" if cut < first else "a" if cut < second else "ab")
        assert (failure is None) == (cut >= second)
        assert failure is None or (failure.code is ErrorCode.MODEL_UNAVAILABLE and failure.code.is_retryable)
        wire.answers.clear()


@pytest.mark.parametrize("line_end", [b"", b"\n"], ids=["no line end", "no blank line"])
async def test_the_last_event_counts_without_a_blank_line_behind_it(
    line_end: bytes, wire: WireServer, models: Models
) -> None:
    usage = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    first, last = sse(says("a"), says("b", "stop", **usage))
    wire.gives(sends(first, last.rstrip() + line_end))
    given, failure = await read_deltas(models().stream(PROMPT))
    assert (failure, text_in(given)) == (None, "ab")
    [used] = [delta["usage"] for delta in given if "usage" in delta]
    assert isinstance(used, dict)
    assert (used["inputTokens"], used["outputTokens"]) == (3, 2)


LONG = b"x" * 5_000


@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        (sends(b"<!DOCTYPE html>" + LONG, kind="text/html"), "MODEL_NOT_FOUND <!DOCTYPE html>xxx"),
        (sends(b'{"choices": []}' + LONG, kind="application/json"), 'MODEL_ERROR {"choices": []}xxx'),
        (sends(b"data: upstream connect error" + LONG + b"\n\n"), "MODEL_ERROR upstream connect errorxxx"),
        (sends(b"data: [1]\n\n", kind="text/plain"), "MODEL_ERROR [1]"),
        (sends(b": processing\n\n"), "MODEL_UNAVAILABLE the connection ended before the answer did"),
        (sends(), "MODEL_UNAVAILABLE the connection ended before the answer did"),
    ],
)
async def test_an_answer_that_is_no_stream_is_a_failure_and_its_beginning_is_logged(
    answer: WireResponse, logged: str, wire: WireServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    wire.gives(*[answer] * 3)
    given, failure = await read_deltas(models().stream(PROMPT))
    assert not given
    assert isinstance(failure, ModelFailure)
    assert f"{failure.code} {failure.error_body.text}".startswith(logged)
    assert "model call failed" in caplog.text
    assert "x" * 300 not in caplog.text
