"""However the bytes of a stream are cut, the deltas are the same; wherever a server dies, the failure is clear."""

import pytest

from agui_container.models.openai.transport import SseReader
from agui_container.protocol.errors import ErrorCode
from tests.models.openai.conftest import Models
from tests.models.openai.server import End, OpenAIResponse, OpenAIServer, says, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in

pytestmark = pytest.mark.wire

LINES = (
    b": a comment\n"
    b"event: message\n"
    b'data: {"choices":[{"delta":\n'
    b'data:  {"content":"h\xc3\xa9"}}]}\n'
    b"id: 1\n"
    b"\n"
    b": keep-alive\n\n"
    b'data:{"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
ENDS = {"LF": b"\n", "CRLF": b"\r\n"}
EVENTS = [
    b'{"choices":[{"delta":\n {"content":"h\xc3\xa9"}}]}',
    b'{"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}]}',
    b"[DONE]",
]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_events_do_not_depend_on_the_cuts(end: bytes) -> None:
    stream = LINES.replace(b"\n", end)
    for first in range(len(stream) + 1):
        for second in (first, (first + len(stream)) // 2):
            reader = SseReader()
            pieces = stream[:first], stream[first:second], stream[second:]
            assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS
            assert list(reader.finish()) == []


def test_an_event_without_its_empty_line_is_given_at_the_end() -> None:
    reader = SseReader()
    assert list(reader.feed(b"data: a\n\ndata: b")) == [b"a"]
    assert list(reader.finish()) == [b"b"]


def test_an_error_field_is_data() -> None:
    assert list(SseReader().feed(b'error: {"code":500}\n\n')) == [b'{"code":500}']


def test_fields_without_a_value_are_read_as_the_standard_says() -> None:
    assert list(SseReader().feed(b"data\n\ndatabase: x\n\ndata:\ndata:  y\n\n")) == [b"\n y"]


async def test_a_server_that_dies_anywhere_is_unavailable(wire: OpenAIServer, models: Models) -> None:
    stream = b"".join(sse(says("a"), says("b", "stop"), "[DONE]"))
    first, second = (len(b"".join(sse(says("a"), says("b", "stop"))[:number])) for number in (1, 2))
    model = models()
    for cut in (*range(1, len(stream), 3), second - 1, second, len(stream)):
        wire.gives(*[OpenAIResponse([stream[:cut]], end=End.ABORTED)] * 3)
        given, failure = await read_deltas(model.stream(PROMPT))
        assert text_in(given) == ("" if cut < first else "a" if cut < second else "ab")
        assert (failure is None) == (cut >= second)
        assert failure is None or (failure.code is ErrorCode.MODEL_UNAVAILABLE and failure.code.is_retryable)
        wire.answers.clear()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<!DOCTYPE html><title>Sign in</title>", ErrorCode.MODEL_NOT_FOUND),
        (b"upstream connect error", ErrorCode.MODEL_ERROR),
        (b"data: upstream connect error\n\n", ErrorCode.MODEL_ERROR),
        (b'{"choices": []}', ErrorCode.MODEL_ERROR),
        (b"data: [1]\n\n", ErrorCode.MODEL_ERROR),
        (b": processing\n\n", ErrorCode.MODEL_UNAVAILABLE),
        (b"", ErrorCode.MODEL_UNAVAILABLE),
    ],
)
async def test_an_answer_that_is_no_stream_is_a_failure_and_its_first_bytes_are_logged(
    body: bytes, code: ErrorCode, wire: OpenAIServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    wire.gives(*[OpenAIResponse([body + b"x" * 5_000 if body and body[0] != ord(":") else body])] * 3)
    given, failure = await read_deltas(models().stream(PROMPT))
    assert not given
    assert failure is not None
    assert failure.code is code
    if code is not ErrorCode.MODEL_UNAVAILABLE:
        assert body.removeprefix(b"data: ").split(b"\n")[0].decode()[:20] in caplog.text
    assert "x" * 300 not in caplog.text
