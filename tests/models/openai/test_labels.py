"""An answer is read by its first byte, whatever its label says. The first bytes of an unreadable one are logged."""

import json

import pytest

from agui_container.protocol.errors import ErrorCode
from tests.models.openai.conftest import Models
from tests.models.openai.server import SSE, End, OpenAIResponse, OpenAIServer, says, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas

BOM = b"\xef\xbb\xbf"
WHOLE = {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
STREAM = b"".join(sse(says("Hello"), says("", "stop"), "[DONE]"))
LINES = b"".join(json.dumps(chunk).encode() + b"\n" for chunk in (says("Hel"), says("lo", "stop")))
BODIES = {
    "events": STREAM,
    "events after a byte order mark": BOM + STREAM,
    "events after blank lines": b"\n\n" + STREAM,
    "events after a comment": b": processing\n\n" + STREAM,
    "one value": json.dumps(WHOLE).encode(),
    "one value after a byte order mark": BOM + json.dumps(WHOLE).encode(),
    "one value on many lines": json.dumps(WHOLE, indent=2).encode() + b"\n",
    "a value per line": LINES,
    "a value per line, the last without its end": LINES.rstrip(),
}
TYPES = [SSE, "text/html", "application/json", "application/x-ndjson", "text/plain", "application/octet-stream"]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", BODIES)
async def test_an_answer_is_read_whatever_its_label_says(
    name: str, kind: str, wire: OpenAIServer, models: Models
) -> None:
    body = BODIES[name]
    wire.gives(*(OpenAIResponse([body[:cut], body[cut:]], type=kind) for cut in (1, 2, 3, len(body) // 2)))
    model = models()
    for _ in range(4):
        given, failure = await read_deltas(model.stream(PROMPT))
        assert failure is None
        assert "".join(str(delta.get("text", "")) for delta in given) == "Hello"
        assert given[-1] == {"stop": "end"}


async def test_lines_are_read_as_they_arrive(wire: OpenAIServer, models: Models) -> None:
    wire.gives(OpenAIResponse([LINES.splitlines(keepends=True)[0]], type="application/x-ndjson", end=End.SILENT))
    deltas = models().stream(PROMPT)
    assert (await anext(deltas)).text == "Hel"  # type: ignore[union-attr]
    await deltas.aclose()


UNREADABLE = {
    "text": b"upstream connect error",
    "broken JSON": b'{"choices": [{"delta": upstream',
    "a broken event": b"data: upstream connect error\n\n",
    "a list of numbers": b"[1]",
}


@pytest.mark.parametrize("kind", [SSE, "text/html"])
async def test_a_web_page_comes_from_a_wrong_address_and_its_first_bytes_are_logged(
    kind: str, wire: OpenAIServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    wire.gives(OpenAIResponse([b"<!DOCTYPE html><title>Sign in</title>" + b"x" * 5_000], type=kind))
    given, failure = await read_deltas(models().stream(PROMPT))
    assert not given
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_NOT_FOUND
    assert "<title>Sign in</title>" in caplog.text
    assert "x" * 300 not in caplog.text


@pytest.mark.parametrize("kind", [SSE, "application/json"])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_the_first_bytes_of_an_answer_that_cannot_be_read_are_logged(
    name: str, kind: str, wire: OpenAIServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    body = UNREADABLE[name] + b"x" * 5_000
    wire.gives(*[OpenAIResponse([body], type=kind)] * 3)
    given, failure = await read_deltas(models().stream(PROMPT))
    assert not given
    assert failure is not None
    assert (failure.code, failure.message) == (ErrorCode.MODEL_ERROR, "The model sent an answer that cannot be read.")
    start = UNREADABLE[name].removeprefix(b"data: ").split(b"\n")[0].decode()
    assert start[:20] in caplog.text.replace("\\'", "'")
    assert "x" * 300 not in caplog.text


async def test_an_empty_answer_and_comments_alone_are_a_connection_that_ended_early(
    wire: OpenAIServer, models: Models
) -> None:
    wire.gives(*[OpenAIResponse([b": processing\n\n"])] * 3, *[OpenAIResponse([])] * 3)
    for _ in range(2):
        _, failure = await read_deltas(models().stream(PROMPT))
        assert failure is not None
        assert failure.code is ErrorCode.MODEL_UNAVAILABLE
