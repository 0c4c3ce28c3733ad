"""A service that throttles, fails, stalls or refuses: no run ends by it, it is told, and made up for."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput, RunFinishedEvent

from agui_container.ports.records import Begun, Change, StoreWarning
from agui_container.ports.store import Delete, StoreUnavailable
from agui_container.stores.agentcore import AgentCoreStore
from agui_container.stores.agentcore.histories import UNREAD, UNWRITTEN
from agui_container.testing import user_input
from tests.engine.doubles import WAIT
from tests.stores.agentcore.conftest import Process
from tests.stores.agentcore.doubles import ids, turn, turn_messages, user
from tests.stores.agentcore.server import THROTTLED, Fault, Memory
from tests.stores.agentcore.test_notes import run_in_a_new_process
from tests.stores.doubles import THREAD, A, begin, claim, claim_run, ending, run

FAULTS = [
    Fault(),
    THROTTLED,
    Fault(403, "AccessDeniedException"),
    Fault(402, "ServiceQuotaExceededException"),
    Fault(404, "ResourceNotFoundException", only="CreateEvent"),
    Fault(503, ""),
]


def take_warnings(store: AgentCoreStore) -> list[StoreWarning]:
    return list(store.take_warnings(THREAD))


async def test_throttling_and_conflicts_are_tried_again(
    store: AgentCoreStore, service: Memory, pauses: list[int]
) -> None:
    service.faults += [THROTTLED, Fault(409, "RetryableConflictException", only="CreateEvent"), Fault(), THROTTLED]
    service.faults[0] = Fault(429, "ThrottledException", only="ListEvents")
    await turn(store)
    assert pauses == [1, 1, 2, 3]
    assert (len(service.stored_events()), take_warnings(store)) == (1, [])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.status} {fault.code}")
async def test_a_turn_that_cannot_be_written_goes_with_the_next_one(
    store: AgentCoreStore, process: Process, service: Memory, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    await turn(store, 1)
    service.down = fault
    await turn(store, 2)
    await turn(store, 3)
    assert take_warnings(store) == [UNWRITTEN]
    assert take_warnings(store) == []
    assert await ids(store) == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert "thread turn not written" in caplog.text
    service.down = None
    await turn(store, 4)
    assert take_warnings(store) == []
    assert (len(service.stored_events()), service.request_counts()["CreateEvent"]) == (
        2,
        len(service.requested_events()),
    )
    assert await ids(process()) == [f"{who}{n}" for n in (1, 2, 3, 4) for who in "ua"]


async def test_a_run_begins_without_a_history_that_cannot_be_read(process: Process, service: Memory) -> None:
    await turn(process(), 1)
    store = process()
    service.down = Fault()
    begun = await begin(store, claim(run("r2"), now=1002.0), Change([turn_messages(2)[0]], order=["u2"]))
    assert isinstance(begun, Begun)
    assert begun.warnings == [UNREAD]
    assert await ids(store) == ["u2"]
    await store.finish(run("r2"), A, [], ending(Change([turn_messages(2)[1]]), 1002.5))
    service.down = None
    await turn(store, 3)
    whole = [f"{who}{n}" for n in (1, 2, 3) for who in "ua"]
    assert await ids(store) == whole
    assert await ids(process()) == whole
    assert take_warnings(store) == []
    shown = [item["conversational"] for item in service.stored_events()[-1]["payload"] if "conversational" in item]
    assert [item["content"]["text"] for item in shown] == ["question 2", "answer 2", "question 3", "answer 3"]


async def test_the_client_hears_of_a_history_that_cannot_be_read(service: Memory) -> None:
    async def agent(input: RunAgentInput) -> AsyncIterator[str]:
        yield "Hm."

    service.down = Fault()
    events = await run_in_a_new_process(user_input("hi"), agent)
    assert [event.name for event in events if isinstance(event, CustomEvent)] == [UNREAD.name]
    assert isinstance(events[-1], RunFinishedEvent)


async def test_outside_a_run_what_cannot_be_read_is_an_error(store: AgentCoreStore, service: Memory) -> None:
    service.down = Fault()
    for use in (store.thread(THREAD), store.messages(THREAD), store.threads("owner"), store.edit(THREAD, Delete())):
        with pytest.raises(StoreUnavailable):
            await use
    service.down = None
    await turn(store)
    assert await ids(store) == ["u1", "a1"]


async def test_a_service_that_stalls_is_not_waited_for(process: Process, service: Memory) -> None:
    store = process(call_seconds=0.2)
    stalled = service.down = Fault(hold=True)
    await turn(store)
    assert take_warnings(store) == [UNWRITTEN]
    service.down = None
    stalled.release.set()
    await turn(process(), 2)


async def test_the_event_loop_goes_on_while_the_service_stalls(store: AgentCoreStore, service: Memory) -> None:
    stalled = Fault(hold=True, only="CreateEvent")
    service.faults.append(stalled)
    await claim_run(store)
    ended = asyncio.create_task(store.finish(run("r1"), A, [], ending(Change([user("u1", "hi")]))))
    async with asyncio.timeout(WAIT):
        await stalled.held.wait()
        assert not ended.done()
        await turn(store, 2, thread_id="t2")
        stalled.release.set()
        await ended
