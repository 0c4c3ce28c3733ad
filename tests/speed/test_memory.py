"""What a token takes of memory, amid its burst and afterwards. Sizes of a process are for ``make bench``."""

import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput, RunStartedEvent, TextMessageContentEvent, TextMessageStartEvent

from app.core.deltas import after
from app.core.encoder import encode
from app.engine.budget import Budget
from app.engine.fairness import BURST
from app.engine.funnel import Funnel
from app.engine.log import RunLog
from app.engine.service import Service
from app.ports import Item, Said
from tests.engine.doubles import asking, caller, make_service
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
        held = [await kept(service, count) for count in ("100", "1000", "11000")]
    finally:
        tracemalloc.stop()
    of_a_token = (held[2] - held[1]) / 10_000
    assert 2 * len(TEXT) < of_a_token < 3 * len(TEXT)  # in the log as JSON, and in the thread's message


async def kept(service: Service, count: str) -> int:
    """Bytes that stay of a run, its first reader gone."""
    before = tracemalloc.get_traced_memory()[0]
    async for _batch in service.start(asking(count, count), caller()):
        pass
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


@requirement("speed.memory")
@pytest.mark.parametrize("item", [DELTA, Said("m", TEXT), TEXT], ids=lambda item: type(item).__name__)
def test_what_goes_on_takes_little_memory_amid_its_burst_too(item: Item) -> None:
    goes_on = after(item, DELTA, encode(DELTA), 0, DELTA.type)
    assert goes_on is not None
    tracemalloc.start()
    try:
        took = sum(goes_on.takes(item) for _ in range(BURST))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert took == BURST
    assert held < 100 * BURST  # what orjson writes holds on to the 4 KB that it was written in


def mixed(number: int) -> list[Item]:
    """Tokens among other events, as an agent says them that counts."""
    return [*[DELTA] * number, CustomEvent(name="n", value=1)]


@requirement("speed.memory")
@pytest.mark.parametrize("number", [1, 2, 3, 10])
def test_tokens_among_other_events_take_about_what_is_counted(number: int) -> None:
    log = RunLog("r1", Budget(1 << 30, 1 << 30))
    funnel = Funnel(asking(), lambda: "id", log)
    funnel.write(RunStartedEvent(thread_id="t1", run_id="r1"))
    funnel.emit(TextMessageStartEvent(message_id="m"))
    counted, times = log.bytes, 6_000 // number
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(times):
            for item in mixed(number):
                funnel.emit(item)
        held = tracemalloc.get_traced_memory()[0]
        change = funnel.left("r1").change
        funnel.release()
        del change
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    counted = log.bytes - counted
    assert held < 1.2 * counted
    assert kept < counted
