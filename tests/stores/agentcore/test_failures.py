"""A service that throttles, fails, stalls or refuses: no run ends by it, it is told, and made up for."""

import asyncio
import threading

import pytest

from agui_container.engine.persistence.cluster import Cluster
from agui_container.ports.records import Change, Claimed, StoreWarning
from agui_container.ports.store import StoreUnavailable
from agui_container.stores.agentcore import AgentCoreStore
from agui_container.stores.agentcore.histories import UNREAD, UNWRITTEN
from agui_container.stores.agentcore.service import ATTEMPTS, CALLS, MemoryService
from tests.buses.memory_bus import MemoryBus
from tests.engine.doubles import WAIT, FakeClock, agent_of, asking, caller, make_service
from tests.engine.doubles import envelopes as envelopes_of
from tests.requirements import requirement
from tests.secret_search import planted
from tests.stores.agentcore.conftest import MEMORY_ID, Process
from tests.stores.agentcore.doubles import ids, turn, turn_messages, user
from tests.stores.agentcore.server import THROTTLED, Fault, Memory
from tests.stores.doubles import THREAD, A, claim, claim_run, ending, run

FAULTS = [
    Fault(),
    THROTTLED,
    Fault(403, "AccessDeniedException"),
    Fault(402, "ServiceQuotaExceededException"),
    Fault(404, "ResourceNotFoundException", only="CreateEvent"),
    Fault(503, ""),
]


def take_warnings(store: AgentCoreStore) -> list[StoreWarning]:
    """Return the warnings of the thread's next run."""
    return list(store.take_warnings(THREAD))


@requirement("memory.retries")
async def test_throttling_and_conflicts_are_tried_again(
    store: AgentCoreStore, service: Memory, pauses: list[int]
) -> None:
    service.faults += [THROTTLED, Fault(409, "RetryableConflictException", only="CreateEvent"), Fault(), THROTTLED]
    service.faults[0] = Fault(429, "ThrottledException", only="ListEvents")
    await turn(store)
    assert pauses == [1, 1, 2, 3]
    assert (len(service.stored_events()), take_warnings(store)) == (1, [])


async def test_tries_are_bounded(store: AgentCoreStore, service: Memory) -> None:
    service.down = THROTTLED
    await turn(store)
    assert service.request_counts() == {"ListEvents": ATTEMPTS, "CreateEvent": ATTEMPTS}


@requirement("memory.degrades")
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


async def test_a_lapse_that_was_made_up_for_is_not_told(store: AgentCoreStore, service: Memory) -> None:
    service.faults += [Fault(403, "AccessDeniedException", only="CreateEvent")]
    await turn(store, 1)
    await turn(store, 2)
    assert take_warnings(store) == []


@requirement("memory.degrades")
async def test_a_run_begins_without_a_history_that_cannot_be_read(process: Process, service: Memory) -> None:
    await turn(process(), 1)
    store = process()
    service.down = Fault()
    assert isinstance(await store.runs.claim(claim(run("r2"))), Claimed)
    assert take_warnings(store) == [UNREAD]
    assert await ids(store) == []
    await store.runs.change(run("r2"), A, 1002.0, Change([turn_messages(2)[0]], order=["u2"]))
    await store.runs.finish(run("r2"), A, [], ending(Change([turn_messages(2)[1]]), 1002.5))
    service.down = None
    await turn(store, 3)
    whole = [f"{who}{n}" for n in (1, 2, 3) for who in "ua"]
    assert await ids(store) == whole
    assert await ids(process()) == whole
    assert take_warnings(store) == []
    shown = [item["conversational"] for item in service.stored_events()[-1]["payload"] if "conversational" in item]
    assert [item["content"]["text"] for item in shown] == ["question 2", "answer 2", "question 3", "answer 3"]


async def test_a_turn_that_was_written_without_the_history_comes_after_it(process: Process, service: Memory) -> None:
    await turn(process(), 1)
    store = process()
    service.faults.append(Fault(403, "AccessDeniedException", only="ListEvents"))
    await turn(store, 2, Change([user("u2", "only this")], order=["u2"]))
    assert await ids(process()) == ["u1", "a1", "u2"]


async def test_outside_a_run_what_cannot_be_read_is_an_error(store: AgentCoreStore, service: Memory) -> None:
    service.down = Fault()
    with pytest.raises(StoreUnavailable):
        await store.threads.get(THREAD)
    with pytest.raises(StoreUnavailable):
        await store.threads.changes(THREAD)
    with pytest.raises(StoreUnavailable):
        await store.threads.list("owner")
    with pytest.raises(StoreUnavailable):
        await store.threads.delete(THREAD)
    service.down = None
    await turn(store)
    assert await ids(store) == ["u1", "a1"]


async def test_a_list_says_when_a_thread_of_it_cannot_be_read(process: Process, service: Memory) -> None:
    for thread_id in ("t1", "t2"):
        await turn(process(), thread_id=thread_id)
    service.faults.append(Fault(403, "AccessDeniedException", only="ListEvents"))
    store = process()
    with pytest.raises(StoreUnavailable):
        await store.threads.list("owner")
    assert len((await store.threads.list("owner")).items) == 2


# --- a service that does not answer -----------------------------------------------------------------------------------


async def test_a_service_that_stalls_is_not_waited_for(process: Process, service: Memory) -> None:
    store = process(call_seconds=0.2)
    stalled = service.down = Fault(hold=True)
    await turn(store)
    assert {lapse.name for lapse in take_warnings(store)} == {UNREAD.name, UNWRITTEN.name}
    service.down = None
    stalled.release.set()
    await turn(process(), 2)


async def test_a_run_goes_on_while_the_service_stalls(process: Process, service: Memory) -> None:
    stalled = service.down = Fault(hold=True)
    clock = FakeClock()
    cluster = Cluster(process(call_seconds=0.2), MemoryBus(), clock, durable=False, new_id=lambda: "replica-1")
    engine = make_service(agent_of("hello"), clock=clock, cluster=cluster)
    seen = await envelopes_of(await engine.admit(asking(), caller()))
    assert [seen[0].type, seen[-1].type] == ["RUN_STARTED", "RUN_FINISHED"]
    assert UNREAD.name.encode() in b"".join(envelope.data for envelope in seen)
    stalled.release.set()
    await engine.drain(0)


async def test_the_event_loop_goes_on_while_the_service_stalls(store: AgentCoreStore, service: Memory) -> None:
    stalled = Fault(hold=True, only="CreateEvent")
    service.faults.append(stalled)
    await claim_run(store)
    ended = asyncio.create_task(store.runs.finish(run("r1"), A, [], ending(Change([user("u1", "hi")]))))
    async with asyncio.timeout(WAIT):
        await stalled.held.wait()
        assert not ended.done()
        await turn(store, 2, thread_id="t2")
        stalled.release.set()
        await ended


async def test_a_call_waits_for_a_thread_also_for_one_that_nobody_waits_for_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agui_container.stores.agentcore.service.CALLS", 1)
    began, go_on = threading.Event(), threading.Event()

    def stalled() -> None:
        began.set()
        go_on.wait(WAIT)
        raise LookupError

    service = MemoryService(MEMORY_ID)
    first = asyncio.create_task(service.call(stalled))
    assert await asyncio.to_thread(began.wait, 10)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(service.call(go_on.is_set))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not second.done()
    go_on.set()
    assert await second


@pytest.mark.parametrize("error", [SystemExit(1), StopIteration()])
async def test_a_thread_is_free_again_however_its_call_ends(error: BaseException) -> None:
    def call() -> None:
        raise error

    service = MemoryService(MEMORY_ID)
    for _ in range(CALLS + 1):
        with pytest.raises(StoreUnavailable, match=type(error).__name__):
            await service.call(call)


async def test_without_a_region_or_credentials_a_run_goes_on(
    store: AgentCoreStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    await turn(store)
    assert take_warnings(store) == [UNREAD, UNWRITTEN]
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", planted("aws-key"))
    await turn(AgentCoreStore(MEMORY_ID), 2)
    await turn(store, 3)
    assert take_warnings(store) == []
    assert await ids(store) == [f"{who}{n}" for n in (2, 1, 3) for who in "ua"]
