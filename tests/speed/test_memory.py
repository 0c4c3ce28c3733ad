"""Memory of an event in the log. Sizes of a process are for ``make bench``."""

import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput, RunStartedEvent, TextMessageContentEvent, TextMessageStartEvent

from agui_container.engine.engine import Engine
from agui_container.engine.log.event_log import EventLog, Flusher
from agui_container.engine.run.pipeline import EventPipeline
from agui_container.ports import Item
from tests.engine.doubles import asking, caller, log_memory, make_service
from tests.requirements import requirement

TEXT = "hello world, "
DELTA = TextMessageContentEvent(message_id="m", delta=TEXT)


@requirement("speed.memory")
async def test_a_token_that_goes_on_is_kept_in_little_more_than_its_text() -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        for _number in range(int(asked.thread_id)):
            yield TEXT

    service = make_service(agent)
    tracemalloc.start()
    try:
        held = [await retained_bytes(service, count) for count in ("100", "1000", "11000")]
    finally:
        tracemalloc.stop()
    of_a_token = (held[2] - held[1]) / 10_000
    assert 2 * len(TEXT) < of_a_token < 2 * len(TEXT) + 150  # in the log as JSON, and in the thread's message


async def retained_bytes(service: Engine, count: str) -> int:
    """Bytes that stay of a run, its first reader gone."""
    before = tracemalloc.get_traced_memory()[0]
    async for _batch in service.start(asking(count, count), caller()):
        pass
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


def mixed(number: int) -> list[Item]:
    """Tokens among other events, as an agent says them that counts."""
    return [*[DELTA] * number, CustomEvent(name="n", value=1)]


@requirement("speed.memory")
@pytest.mark.parametrize("number", [1, 2, 3, 10])
async def test_tokens_among_other_events_take_about_what_is_counted(number: int) -> None:
    log = EventLog("r1", log_memory(1 << 30, 1 << 30), Flusher())
    pipeline = EventPipeline(lambda: "id", log)
    pipeline.start_from(asking())
    pipeline.write(RunStartedEvent(thread_id="t1", run_id="r1"))
    pipeline.submit(TextMessageStartEvent(message_id="m"))
    counted, times = log.bytes, 6_000 // number
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(times):
            for item in mixed(number):
                pipeline.submit(item)
        held = tracemalloc.get_traced_memory()[0]
        change = pipeline.result("r1").change
        pipeline.release()
        del change
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    counted = log.bytes - counted
    assert held < 1.2 * counted
    assert kept < counted
