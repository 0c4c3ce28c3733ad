"""Connections: none before the first call, shared by all, closed at once by a cancel, given back after an answer."""

import asyncio
from contextlib import aclosing

import pytest

from agui_container.models.openai import OpenAIModel
from agui_container.models.openai import model as model_module
from tests.engine.doubles import WAIT
from tests.models.openai.conftest import KEY, Models
from tests.models.openai.server import says, sends, speaks, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in
from tests.models.wire import WireServer

pytestmark = pytest.mark.wire


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


async def test_calls_share_a_connection(wire: WireServer, models: Models) -> None:
    wire.gives(speaks("a"), speaks("b"))
    model = models()
    assert [text_in((await read_deltas(model.stream(PROMPT)))[0]) for _ in range(2)] == ["a", "b"]
    assert wire.connections == 1


async def test_calls_at_the_same_time_keep_their_streams_apart(wire: WireServer, models: Models) -> None:
    texts = [f"answer {number}" for number in range(20)]
    wire.gives(*(speaks(*text) for text in texts))
    model = models()
    answers = await asyncio.gather(*(read_deltas(model.stream(PROMPT)) for _ in texts))
    assert sorted(text_in(given) for given, _ in answers) == sorted(texts)


async def test_a_server_that_keeps_the_stream_open_after_its_end_holds_up_nothing(
    wire: WireServer, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "LINGER", 0.01)
    answer = sends(*sse(says("a", "stop"), "[DONE]"), hold=True)
    wire.gives(answer)
    assert await read_deltas(models().stream(PROMPT)) == ([{"text": "a"}, {"stop": "end"}], None)
    await answer.gone.wait()


async def test_a_cancel_closes_the_connection(wire: WireServer, models: Models) -> None:
    answer = sends(*sse(says("a")), hold=True)
    wire.gives(answer)
    begun = asyncio.Event()

    async def consume() -> None:
        async with aclosing(models().stream(PROMPT)) as deltas:
            async for _ in deltas:
                begun.set()

    task = asyncio.create_task(consume())
    await begun.wait()
    assert not answer.gone.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(answer.gone.wait(), WAIT)
