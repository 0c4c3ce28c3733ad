"""A cancelled caller returns immediately in any state of the connection, and the call's thread ends."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from agui_container.models.bedrock.client import BedrockEvents
from agui_container.ports import Delta
from agui_container.protocol.errors import AppError
from tests.engine.doubles import WAIT
from tests.models.bedrock.doubles import (
    ANSWER,
    END,
    METADATA,
    START,
    BedrockModels,
    Pauses,
    collect_deltas,
    model_threads,
    prompt,
    short,
    text,
    threads_gone,
)
from tests.models.bedrock.server import BedrockResponse, BedrockServer


async def cancel_task(task: asyncio.Task[list[Delta]]) -> None:
    """Cancel a task that waits. The server holds the stream meanwhile, so nothing that it sends can end the task."""
    task.cancel()
    async with asyncio.timeout(WAIT):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_cancel_during_a_stalled_read_returns_at_once_and_ends_the_read(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    (answer,) = wire.will(BedrockResponse([START, text("Hel")], hold=True))
    task = asyncio.create_task(collect_deltas(bedrock().stream(prompt())))
    await answer.held.wait()
    await cancel_task(task)
    await answer.gone.wait()
    await threads_gone()
    assert not answer.release.is_set()


async def test_a_cancel_before_bedrock_answers_returns_while_the_thread_still_waits(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    (answer, _) = wire.will(BedrockResponse(ANSWER, hold_head=True), ANSWER)
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


async def test_a_thread_whose_read_cannot_be_aborted_ends_with_the_read(
    wire: BedrockServer, bedrock: BedrockModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BedrockEvents, "abort", lambda _: None)  # urllib3 before 2.3
    (answer,) = wire.will(BedrockResponse([START, text("Hel")], hold=True))
    task = asyncio.create_task(collect_deltas(bedrock().stream(prompt())))
    await answer.held.wait()
    await cancel_task(task)
    assert len(model_threads()) == 1
    answer.release.set()
    await threads_gone()


async def test_a_stream_that_is_left_halfway_is_closed(wire: BedrockServer, bedrock: BedrockModels) -> None:
    (answer,) = wire.will(BedrockResponse([START, text("Hel")], hold=True))
    deltas = bedrock().stream(prompt())
    async for _ in deltas:
        break
    await deltas.aclose()
    await answer.gone.wait()
    await threads_gone()


async def test_a_cancel_between_tries_is_not_a_failure(wire: BedrockServer, bedrock: BedrockModels) -> None:
    reached = asyncio.Event()

    class Endless(Pauses):
        async def __call__(self, attempt: int) -> None:
            reached.set()
            await asyncio.Event().wait()

    bedrock.pauses = Endless()
    wire.will(BedrockResponse(status=429, error="ThrottlingException"))
    task = asyncio.create_task(collect_deltas(bedrock().stream(prompt())))
    await reached.wait()
    await cancel_task(task)


async def test_calls_stream_side_by_side(wire: BedrockServer, bedrock: BedrockModels) -> None:
    answers = wire.will(*(BedrockResponse([START, text("a"), END, METADATA], hold=True) for _ in range(8)))
    model = bedrock()
    streams = [model.stream(prompt()) for _ in answers]

    async def first(stream: AsyncIterator[Delta]) -> Delta:
        return await anext(stream)

    assert len(await asyncio.gather(*map(first, streams))) == 8  # all are open, none has ended
    for answer in answers:
        answer.release.set()
    rests = await asyncio.gather(*map(collect_deltas, streams))
    assert all(short(rest)[0] == ["stop", "end"] for rest in rests)


async def test_an_answer_is_over_with_its_last_event_even_if_the_connection_stays_open(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    (answer,) = wire.will(BedrockResponse(ANSWER, hold=True))
    assert len(await collect_deltas(bedrock().stream(prompt()))) == 3
    assert not answer.release.is_set()
    answer.release.set()
    await threads_gone()


async def test_a_cancelled_call_leaves_no_noise(
    wire: BedrockServer, bedrock: BedrockModels, caplog: pytest.LogCaptureFixture
) -> None:
    (answer,) = wire.will(BedrockResponse([START], hold=True))
    task = asyncio.create_task(collect_deltas(bedrock().stream(prompt())))
    await answer.held.wait()
    await cancel_task(task)
    await threads_gone()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_clean_up_that_fails_costs_neither_the_answer_nor_the_thread(
    wire: BedrockServer, bedrock: BedrockModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = BedrockEvents.close

    def fail(events: BedrockEvents) -> None:
        close(events)
        raise LookupError

    monkeypatch.setattr(BedrockEvents, "close", fail)
    wire.will(ANSWER, ANSWER)
    model = bedrock(max_calls=1)
    for _ in range(2):
        assert len(await collect_deltas(model.stream(prompt()))) == 3
        await threads_gone()


async def test_after_the_last_event_a_connection_is_not_cut_because_another_call_may_have_it(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    (answer, _) = wire.will(BedrockResponse([START, METADATA], hold=True), ANSWER)
    model = bedrock()
    deltas = model.stream(prompt())
    await anext(deltas)
    await deltas.aclose()
    await collect_deltas(model.stream(prompt()))  # gives a cut the time to be seen
    assert not answer.gone.is_set()
    answer.release.set()
    await threads_gone()
    assert not answer.gone.is_set()
