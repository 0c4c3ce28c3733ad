"""A shutdown while events wait for a slow store: all are stored at once with the end of their run."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import (
    EventType,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)
from pydantic_core import from_json

from agui_container.conversation.recovery import EVENT
from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports.records import RunKey
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.validator import RunSequence
from agui_container.run.event_log import BATCH_EVENTS
from agui_container.run.run import Run
from agui_container.run.subscription import Subscription
from tests.engine.doubles import asking, caller, envelopes, eventually, wait_for_event
from tests.engine.replicas import Replicas, durable_store_of
from tests.stores.doubles import get_delta, get_run

RUN = RunKey("everybody", "t1", "r1")
COUNT = 3 * BATCH_EVENTS

SUCCEEDED = RunFinishedEvent(thread_id="t1", run_id="r1")
CANCELLED = RunFinishedEvent(thread_id="t1", run_id="r1", outcome=RunFinishedCancelledOutcome())
FAILED = RunErrorEvent(message="no", code="MINE")

ENDS: dict[str, tuple[Item | None, str, str]] = {
    "goes on": (None, "error", "SHUTTING_DOWN"),
    "has succeeded": (SUCCEEDED, "finished", ""),
    "was cancelled": (CANCELLED, "cancelled", ""),
    "has failed": (FAILED, "error", "MINE"),
}
"""States of a run at shutdown: its last event, and the status and error code of its record afterwards."""


class SlowAppend:
    """A store's ``append`` that stores the first envelopes at once and the others when the test allows it."""

    def __init__(self, patch: pytest.MonkeyPatch, service: Engine) -> None:
        self.may = asyncio.Event()
        self.waits = asyncio.Event()
        self.failure: Exception | None = None
        self._store = durable_store_of(service)
        self._append = self._store.append
        patch.setattr(self._store, "append", self.append)

    async def append(self, run: RunKey, replica: str, given: Sequence[Envelope]) -> None:
        """Hold all envelopes after the first ones. If a failure is set, store them and raise the failure once."""
        if given[0].seq == 1:
            await self._append(run, replica, given)
            return
        self.waits.set()
        await self.may.wait()
        await self._append(run, replica, given)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


def talker(last: Item | None) -> object:
    """Return an agent that opens a step and a message, and yields more text than one batch holds."""

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield StepStartedEvent(step_name="s")
        yield TextMessageStartEvent(message_id="m")
        for _number in range(COUNT):
            yield TextMessageContentEvent(message_id="m", delta="x")
        if last is None:
            await asyncio.Event().wait()
        else:
            yield last

    return agent


async def read_during_stop(service: Engine, reader: Subscription, slow: SlowAppend) -> list[Envelope]:
    """Return the envelopes of a run during which the server stops and the store recovers."""
    run = reader.run
    assert isinstance(run, Run)
    recorder = run.recorder
    await wait_for_event(slow.waits)
    await eventually(lambda: len(run.log) > COUNT)
    seen = asyncio.create_task(envelopes(reader))
    drain = asyncio.create_task(service.drain(0))
    await eventually(lambda: recorder.is_stopping)
    slow.may.set()
    await drain
    return await seen


def assert_legal(seen: Sequence[Envelope]) -> None:
    """Check that no event is missing and that the run closes all its entities."""
    assert [envelope.seq for envelope in seen] == list(range(1, len(seen) + 1))
    sequence = RunSequence()
    for envelope in seen[:-1]:
        sequence.feed(EVENT.validate_json(envelope.data))
    assert sequence.closers() == []
    sequence.feed(EVENT.validate_json(seen[-1].data))


@pytest.mark.parametrize(("last", "status", "code"), ENDS.values(), ids=ENDS)
async def test_a_stop_stores_the_end_of_a_run_with_all_events_before_it(
    monkeypatch: pytest.MonkeyPatch, last: Item | None, status: str, code: str
) -> None:
    replicas = Replicas()
    service = await replicas.start(talker(last))
    slow = SlowAppend(monkeypatch, service)
    seen = await read_during_stop(service, await service.admit(asking(), caller()), slow)
    assert len(seen) > COUNT
    assert_legal(seen)
    assert {envelope.type for envelope in seen[-3:-1]} == {EventType.TEXT_MESSAGE_END, EventType.STEP_FINISHED}
    assert from_json(seen[-1].data).get("code", "") == code
    stored = [each async for each in stored_envelopes(replicas)]
    assert stored == seen
    record = await get_run(replicas.store, RUN)
    assert (record.status, record.last_seq) == (status, len(seen))
    assert (from_json(record.error)["code"] if record.error else "") == code
    kept = await get_delta(replicas.store, RUN.thread)
    assert [len(from_json(message.data)["content"]) for message in kept.messages] == [2, COUNT]


async def stored_envelopes(replicas: Replicas) -> AsyncIterator[Envelope]:
    after = 0
    while page := await replicas.store.envelopes(RUN, after):
        for envelope in page:
            yield envelope
        after = page[-1].seq


async def test_an_end_does_not_follow_events_that_the_store_has_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a write that failed it is not known what the store has, so the same events are written again first."""
    replicas = Replicas()
    service = await replicas.start(talker(SUCCEEDED))
    slow = SlowAppend(monkeypatch, service)
    slow.failure = StoreUnavailable("it has stored that and did not say so")
    seen = await read_during_stop(service, await service.admit(asking(), caller()), slow)
    assert_legal(seen)
    assert [each async for each in stored_envelopes(replicas)] == seen
