"""Threads beyond their process: titles, forks, lists, feedback, odd ids, and the end of one with all of its events."""

import pytest

from agui_container.ports.records import Change, ThreadKey
from agui_container.ports.store import CannotFork, Delete, Fork, Rename, StoreUnavailable
from agui_container.stores.agentcore import AgentCoreStore, service
from tests.stores.agentcore.conftest import Process
from tests.stores.agentcore.doubles import answer, ids, turn
from tests.stores.agentcore.server import Fault, Memory
from tests.stores.doubles import THREAD, get_thread, message, thread_of

FORK = ThreadKey("owner", "f1")


async def title(store: AgentCoreStore, key: ThreadKey = THREAD) -> str | None:
    return (await get_thread(store, key)).title


async def test_a_title_that_somebody_chose_is_written_at_once(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    await turn(store)
    for chosen in ("One", "Two", "One"):
        assert await process().edit(THREAD, Rename(chosen))
        assert await title(process()) == chosen
    assert all("conversational" not in item for made in service.requested_events()[1:] for item in made["payload"])


async def test_a_fork_is_there_after_a_restart_and_is_no_new_speech(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    for n in (1, 2):
        await turn(store, n)
    await process().edit(THREAD, Fork("u2", "f1", 2000.0))
    assert await ids(process(), FORK) == ["u1", "a1", "u2"]
    fork = await get_thread(process(), FORK)
    assert (fork.forked_from, fork.created_at) == (("t1", "u2"), 2000.0)
    assert all("blob" in item for item in service.requested_events()[-1]["payload"])
    again = await process().edit(THREAD, Fork("u2", "f1", 3000.0))
    assert again == fork
    with pytest.raises(CannotFork):
        await process().edit(THREAD, Fork("a2", "f1", 3000.0))


@pytest.mark.parametrize("page", [2, service.PAGE])
async def test_a_list_has_the_threads_of_earlier_processes(
    store: AgentCoreStore, process: Process, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PAGE", page)
    for n in range(1, 7):
        await turn(store, n, thread_id=f"t {n}")
    await store.edit(ThreadKey("owner", "t 3"), Rename("Three"))
    restarted = process()
    await turn(restarted, 9, thread_id="t 9")
    first = await restarted.threads("owner", limit=4)
    rest = await restarted.threads("owner", limit=4, page=first.next)
    threads = [thread.key.thread_id for thread in (*first.items, *rest.items)]
    assert threads == ["t 9", "t 6", "t 5", "t 4", "t 3", "t 2", "t 1"]
    assert (rest.items[0].title, (await restarted.threads("nobody")).items) == ("Three", [])


async def test_a_thread_that_went_on_elsewhere_after_a_list_is_read_again_by_its_run(process: Process) -> None:
    here, elsewhere = process(), process()
    await turn(elsewhere, 1)
    await here.threads("owner")
    await turn(elsewhere, 2, Change([answer("a1", "better"), message("m2")]))
    await turn(here, 3)
    assert await ids(here) == await ids(process()) == ["u1", "a1", "m2", "u3", "a3"]


async def test_a_deleted_thread_has_no_events(store: AgentCoreStore, process: Process, service: Memory) -> None:
    for n in range(1, 120):
        await turn(store, n, Change([message("m1", str(n))]))
    await turn(store, thread_id="t2")
    assert await process().edit(THREAD, Delete())
    assert [event["sessionId"] for event in service.stored_events()] == ["t2"]
    assert await thread_of(process(), THREAD) is None
    assert not await process().edit(THREAD, Delete())


async def test_a_removal_that_fails_is_an_error_and_can_be_repeated(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    for n in (1, 2):
        await turn(store, n)
    service.faults.append(Fault(403, "AccessDeniedException", only="DeleteEvent"))
    with pytest.raises(StoreUnavailable):
        await store.edit(THREAD, Delete())
    assert await store.edit(THREAD, Delete())
    assert (service.stored_events(), await ids(process())) == ([], None)


ODD = ["", " ", "-a", "a b", "a/b", "ü", "\U0001f600", "\ud800", "a" * 101, "a:b", "../x", "%2F", "sha256-00", "a\n"]


async def test_a_list_knows_threads_by_their_own_ids(store: AgentCoreStore, process: Process) -> None:
    for name in ODD:
        await turn(store, 1, thread_id=name)
    threads = (await process().threads("owner")).items
    assert sorted(thread.key.thread_id for thread in threads) == sorted(ODD)
