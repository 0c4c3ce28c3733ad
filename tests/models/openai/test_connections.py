"""Connections: none before the first call, shared by all, closed at once by a cancel, given back after an answer."""

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing

import pytest

from agui_container.models.openai import OpenAIModel, transport
from agui_container.models.openai import model as model_module
from agui_container.ports import TextDelta
from agui_container.protocol.errors import ErrorCode
from tests.engine.doubles import WAIT
from tests.models.openai.conftest import KEY, Models
from tests.models.openai.server import End, OpenAIResponse, OpenAIServer, says, speaks, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in


def test_nothing_is_imported_before_it_is_used() -> None:
    code = (
        "import sys; from agui_container.models.openai import OpenAIModel; OpenAIModel('m');"
        "sys.exit(any(name in sys.modules for name in ('httpx', 'httpcore', 'h11', 'openai')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_does_not_show_its_key() -> None:
    assert KEY not in repr(OpenAIModel("m", api_key=KEY))


WRONG = ["", "localhost:8000", "ftp://host/v1", "http://", "file:///etc/passwd", "http://[host/v1", "http://host/v1\n"]


@pytest.mark.parametrize("url", [*WRONG, "http://host:abc/v1", "http://host:65536/v1", "http://host:0/v1"])
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        OpenAIModel("m", url)


@pytest.mark.parametrize("key", ["sk-\nx: y", "schlüssel"])
def test_a_key_must_be_one(key: str) -> None:
    with pytest.raises(ValueError, match="API key"):
        OpenAIModel("m", api_key=key)


async def test_calls_share_a_connection(wire: OpenAIServer, models: Models) -> None:
    wire.gives(speaks("a"), speaks("b"))
    model = models()
    assert [text_in((await read_deltas(model.stream(PROMPT)))[0]) for _ in range(2)] == ["a", "b"]
    assert wire.connections == 1


async def test_calls_at_the_same_time_open_one_client(wire: OpenAIServer, models: Models) -> None:
    wire.gives(speaks("a"), speaks("a"))
    model = models()
    answers = await asyncio.gather(*(read_deltas(model.stream(PROMPT)) for _ in range(2)))
    assert [text_in(given) for given, _ in answers] == ["a", "a"]


async def test_calls_at_the_same_time_keep_their_streams_apart(wire: OpenAIServer, models: Models) -> None:
    texts = [f"answer {number}" for number in range(20)]
    wire.gives(*(speaks(*text) for text in texts))
    model = models()
    answers = await asyncio.gather(*(read_deltas(model.stream(PROMPT)) for _ in texts))
    assert sorted(text_in(given) for given, _ in answers) == sorted(texts)


async def test_a_server_that_keeps_the_stream_open_after_its_end_holds_up_nothing(
    wire: OpenAIServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "LINGER", 0.01)
    wire.gives(OpenAIResponse(sse(says("a", "stop"), "[DONE]"), end=End.SILENT))
    assert await read_deltas(models().stream(PROMPT)) == ([{"text": "a"}, {"stop": "end"}], None)
    await wire.closed.wait()


async def test_a_cancel_closes_the_connection(wire: OpenAIServer, models: Models) -> None:
    wire.gives(OpenAIResponse(sse(says("a")), end=End.SILENT))
    begun = asyncio.Event()

    async def consume() -> None:
        async with aclosing(models().stream(PROMPT)) as deltas:
            async for _ in deltas:
                begun.set()

    task = asyncio.create_task(consume())
    await begun.wait()
    assert not wire.closed.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(wire.closed.wait(), WAIT)


async def test_a_reader_that_leaves_closes_the_connection(wire: OpenAIServer, models: Models) -> None:
    wire.gives(OpenAIResponse(sse(says("a")), end=End.SILENT))
    async with aclosing(models().stream(PROMPT)) as deltas:
        assert await anext(deltas) == TextDelta("a")
    await asyncio.wait_for(wire.closed.wait(), WAIT)


async def test_a_cancel_before_the_answer_closes_the_connection(wire: OpenAIServer, models: Models) -> None:
    wire.gives(OpenAIResponse(end=End.SILENT))
    task = asyncio.create_task(read_deltas(models().stream(PROMPT)))
    await wire.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(wire.closed.wait(), WAIT)


async def test_a_closed_model_opens_new_connections(wire: OpenAIServer, models: Models) -> None:
    wire.gives(speaks("a"), speaks("b"))
    model = models()
    await model.aclose()  # nothing to close yet
    assert text_in((await read_deltas(model.stream(PROMPT)))[0]) == "a"
    await model.aclose()
    assert text_in((await read_deltas(model.stream(PROMPT)))[0]) == "b"
    assert wire.connections == 2


async def test_a_server_that_does_not_stream_is_understood(wire: OpenAIServer, models: Models) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "one", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hello", "tool_calls": [call]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    wire.gives(OpenAIResponse([json.dumps(body).encode()], type="application/json"))
    assert await read_deltas(models().stream(PROMPT)) == (
        [{"text": "Hello"}, {"call": [0, "{}", "one"]}, {"stop": "tools"}],
        None,
    )


async def test_a_stream_whose_last_event_has_no_empty_line_is_read(wire: OpenAIServer, models: Models) -> None:
    wire.gives(OpenAIResponse([*sse(says("a")), b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}']))
    assert await read_deltas(models().stream(PROMPT)) == ([{"text": "a"}, {"stop": "end"}], None)


async def test_an_answer_without_streaming_that_breaks_off_is_unavailable(wire: OpenAIServer, models: Models) -> None:
    wire.gives(*[OpenAIResponse([b'{"choices":['], type="application/json", end=End.ABORTED)] * 3)
    _, failure = await read_deltas(models().stream(PROMPT))
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_UNAVAILABLE


async def test_an_answer_without_streaming_that_does_not_end_is_an_error(
    wire: OpenAIServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_EVENT", 1000)
    wire.gives(OpenAIResponse([b"x" * 2000], type="application/json", end=End.SILENT))
    _, failure = await read_deltas(models().stream(PROMPT))
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_ERROR
