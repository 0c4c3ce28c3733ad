"""A cancelled caller returns immediately in any state of the connection, and the call's thread ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agui_container.ports import Delta
from agui_container.protocol.errors import AppError
from tests.engine.doubles import WAIT
from tests.models.bedrock.doubles import (
    ANSWER,
    END,
    METADATA,
    START,
    BedrockModels,
    collect_deltas,
    model_threads,
    prompt,
    short,
    text,
    threads_gone,
)
from tests.models.bedrock.server import BedrockServer, answers

pytestmark = pytest.mark.wire


async def cancel_task(task: asyncio.Task[list[Delta]]) -> None:
    """Cancel a task that waits. The server holds the stream meanwhile, so nothing that it sends can end the task."""
    task.cancel()
    async with asyncio.timeout(WAIT):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_cancel_before_bedrock_answers_returns_while_the_thread_still_waits(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    (answer, _) = wire.will(answers(*ANSWER, hold_head=True), ANSWER)
    model = bedrock(max_calls=1, max_attempts=1)
    task = asyncio.create_task(collect_deltas(model.stream(prompt())))
    await answer.held.wait()
    await cancel_task(task)
    assert len(model_threads()) == 1
    with pytest.raises(AppError) as caught:  # the thread counts until its read ends
        await collect_deltas(model.stream(prompt()))
    assert caught.value.code == "MODEL_THROTTLED"
    answer.release.set()
    await threads_gone()
    assert short(await collect_deltas(model.stream(prompt())))[0] == ["text", "Hello"]


async def test_a_stream_that_is_left_halfway_is_closed(wire: BedrockServer, bedrock: BedrockModels) -> None:
    (answer,) = wire.will(answers(START, text("Hel"), hold=True))
    deltas = bedrock().stream(prompt())
    async for _ in deltas:
        break
    await deltas.aclose()
    await answer.gone.wait()
    await threads_gone()


async def test_calls_stream_side_by_side(wire: BedrockServer, bedrock: BedrockModels) -> None:
    held = wire.will(*(answers(START, text("a"), END, METADATA, hold=True) for _ in range(8)))
    model = bedrock()
    streams = [model.stream(prompt()) for _ in held]

    async def first(stream: AsyncIterator[Delta]) -> Delta:
        return await anext(stream)

    assert len(await asyncio.gather(*map(first, streams))) == 8  # all are open, none has ended
    for answer in held:
        answer.release.set()
    rests = await asyncio.gather(*map(collect_deltas, streams))
    assert all(short(rest)[0] == ["stop", "end"] for rest in rests)


async def test_after_the_last_event_a_connection_is_not_cut_because_another_call_may_have_it(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    (answer, _) = wire.will(answers(START, METADATA, hold=True), ANSWER)
    model = bedrock()
    deltas = model.stream(prompt())
    await anext(deltas)
    await deltas.aclose()
    await collect_deltas(model.stream(prompt()))  # gives a cut the time to be seen
    assert not answer.gone.is_set()
    answer.release.set()
    await threads_gone()
    assert not answer.gone.is_set()
