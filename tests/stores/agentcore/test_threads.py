"""Threads beyond their process: titles, forks, lists, feedback, odd ids, and the end of one with all of its events."""

import pytest

from agui_container.ports.records import Change, Feedback, ThreadKey
from agui_container.ports.store import CannotFork, Fork, LeaseLost, StoreUnavailable
from agui_container.stores.agentcore import AgentCoreStore, service
from agui_container.stores.agentcore.service import HASHED, actor_id, session_id
from agui_container.stores.agentcore.turn_events import conversation_item
from tests.requirements import requirement
from tests.stores.agentcore.conftest import Process
from tests.stores.agentcore.doubles import answer, ids, turn, turn_messages
from tests.stores.agentcore.server import Fault, Memory
from tests.stores.doubles import RUN, THREAD, A, claim_run, ending, message, run

FORK = ThreadKey("owner", "f1")


async def title(store: AgentCoreStore, key: ThreadKey = THREAD) -> str | None:
    thread = await store.threads.get(key)
    assert thread is not None
    return thread.title


async def test_a_title_that_somebody_chose_is_written_at_once(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    await turn(store)
    for chosen in ("One", "Two", "One"):
        assert await process().threads.rename(THREAD, chosen, 2000.0)
        assert await title(process()) == chosen
    assert all("conversational" not in item for made in service.requested_events()[1:] for item in made["payload"])


async def test_metadata_is_written_at_once(store: AgentCoreStore, process: Process) -> None:
    await turn(store)
    assert await store.threads.annotate(THREAD, {"pinned": True})
    assert await process().threads.annotate(THREAD, {"visibility": "org"})
    thread = await process().threads.get(THREAD)
    assert thread is not None
    assert thread.metadata == b'{"pinned":true,"visibility":"org"}'


async def test_a_title_that_was_made_goes_with_its_turn(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    await turn(store, change=Change(turn_messages(1), title="Made"))
    assert (await title(process()), len(service.requested_events())) == ("Made", 1)


async def test_a_title_that_cannot_be_written_goes_with_the_next_turn(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    await turn(store)
    service.faults.append(Fault(403, "AccessDeniedException"))
    assert await store.threads.rename(THREAD, "Chosen", 2000.0)
    await turn(store, 2)
    assert await title(process()) == "Chosen"


async def test_a_fork_is_there_after_a_restart_and_is_no_new_speech(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    for n in (1, 2):
        await turn(store, n)
    await process().threads.fork(Fork(THREAD, "u2", "f1", 2000.0))
    assert await ids(process(), FORK) == ["u1", "a1", "u2"]
    fork = await process().threads.get(FORK)
    assert fork is not None
    assert (fork.forked_from, fork.created_at) == (("t1", "u2"), 2000.0)
    assert all("blob" in item for item in service.requested_events()[-1]["payload"])
    assert (await process().threads.fork(Fork(THREAD, "u2", "f1", 3000.0))).created_at == 2000.0
    with pytest.raises(CannotFork):
        await process().threads.fork(Fork(THREAD, "a2", "f1", 3000.0))


async def test_a_token_of_an_earlier_process_is_none_of_this_one(process: Process) -> None:
    earlier, restarted = process(), process()
    await turn(earlier)
    before = await earlier.threads.changes(THREAD)
    assert before is not None
    delta = await restarted.threads.changes(THREAD, before.next)
    assert delta is not None
    assert ([message.id for message in delta.messages], delta.order) == (["u1", "a1"], ["u1", "a1"])


async def test_feedback_can_be_given_to_a_message_of_an_earlier_process(
    store: AgentCoreStore, process: Process
) -> None:
    await turn(store)
    feedback = Feedback("a1", "positive", (), None, 1.0, 1.0)
    assert await process().feedbacks.put(THREAD, feedback) == feedback


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [2, service.PAGE])
async def test_a_list_has_the_threads_of_earlier_processes(
    store: AgentCoreStore, process: Process, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PAGE", page)
    for n in range(1, 7):
        await turn(store, n, thread_id=f"t {n}")
    await store.threads.rename(ThreadKey("owner", "t 3"), "Three", 2000.0)
    restarted = process()
    await turn(restarted, 9, thread_id="t 9")
    first = await restarted.threads.list("owner", limit=4)
    rest = await restarted.threads.list("owner", limit=4, page=first.next)
    threads = [thread.key.thread_id for thread in (*first.items, *rest.items)]
    assert threads == ["t 3", "t 9", "t 6", "t 5", "t 4", "t 2", "t 1"]
    assert (first.items[0].title, (await restarted.threads.list("nobody")).items) == ("Three", [])


async def test_threads_that_are_here_are_not_read_again_for_a_list(store: AgentCoreStore, service: Memory) -> None:
    await turn(store)
    reads = service.request_counts()["ListEvents"]
    await store.threads.list("owner")
    assert service.request_counts()["ListEvents"] == reads


async def test_the_history_of_a_forgotten_thread_is_read_again_before_it_is_written(
    store: AgentCoreStore, process: Process, service: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agui_container.stores.agentcore.histories.MAX_THREADS", 1)
    for n in (1, 2):
        await turn(store, n)
        await turn(store, n, thread_id="t2")
    assert [
        [item for item in event["payload"] if "conversational" in item] for event in service.requested_events()
    ] == [[conversation_item(message) for message in turn_messages(n)] for n in (1, 1, 2, 2)]
    assert await ids(process()) == ["u1", "a1", "u2", "a2"]


async def test_threads_that_are_not_there_push_out_none_that_is(
    store: AgentCoreStore, service: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agui_container.stores.agentcore.histories.MAX_THREADS", 2)
    await turn(store)
    for n in range(5):
        assert await store.threads.get(ThreadKey("owner", f"none {n}")) is None
    reads = service.request_counts()["ListEvents"]
    await store.threads.list("owner")
    assert service.request_counts()["ListEvents"] == reads


async def test_a_thread_that_went_on_elsewhere_after_a_list_is_read_again_by_its_run(process: Process) -> None:
    here, elsewhere = process(), process()
    await turn(elsewhere, 1)
    await here.threads.list("owner")
    await turn(elsewhere, 2, Change([answer("a1", "better"), message("m2")]))
    await turn(here, 3)
    assert await ids(here) == await ids(process()) == ["u1", "a1", "m2", "u3", "a3"]


async def test_a_message_that_was_removed_elsewhere_after_a_list_stays_removed(process: Process) -> None:
    here, elsewhere = process(), process()
    for n in (1, 2):
        await turn(elsewhere, n)
    await here.threads.list("owner")
    await turn(elsewhere, 3, Change([message("m3")], order=["u1", "a1", "m3"]))
    await turn(here, 4)
    assert await ids(here) == await ids(process()) == ["u1", "a1", "m3", "u4", "a4"]


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_a_deleted_thread_has_no_events(store: AgentCoreStore, process: Process, service: Memory) -> None:
    for n in range(1, 120):
        await turn(store, n, Change([message("m1", str(n))]))
    await turn(store, thread_id="t2")
    assert await process().threads.delete(THREAD)
    assert [event["sessionId"] for event in service.stored_events()] == ["t2"]
    assert await process().threads.get(THREAD) is None
    assert not await process().threads.delete(THREAD)


async def test_a_removal_that_fails_is_an_error_and_can_be_repeated(
    store: AgentCoreStore, process: Process, service: Memory
) -> None:
    for n in (1, 2):
        await turn(store, n)
    service.faults.append(Fault(403, "AccessDeniedException", only="DeleteEvent"))
    with pytest.raises(StoreUnavailable):
        await store.threads.delete(THREAD)
    assert await store.threads.delete(THREAD)
    assert (service.stored_events(), await ids(process())) == ([], None)


async def test_a_run_on_a_deleted_thread_writes_nothing(store: AgentCoreStore, service: Memory) -> None:
    await claim_run(store)
    await store.threads.delete(THREAD)
    with pytest.raises(LeaseLost):
        await store.runs.finish(RUN, A, [], ending(Change([message("m1")])))
    assert service.requested_events() == []


async def test_a_thread_can_be_made_again(store: AgentCoreStore, process: Process) -> None:
    await turn(store, 1)
    await store.threads.delete(THREAD)
    for n in (2, 3):
        await turn(store, n)
    assert await ids(process()) == ["u2", "a2", "u3", "a3"]


# --- names ------------------------------------------------------------------------------------------------------------

ODD = ["", " ", "-a", "a b", "a/b", "ü", "\U0001f600", "\ud800", "a" * 101, "a:b", "../x", "%2F", "sha256-00", "a\n"]


@requirement("memory.names")
@pytest.mark.parametrize("name", ODD, ids=repr)
async def test_any_id_names_a_thread_of_its_own(process: Process, name: str) -> None:
    mine, theirs = run("r1", name), run("r1", "t1", name)
    for key, text in ((mine, "mine"), (theirs, "theirs")):
        store = process()
        await claim_run(store, key)
        await store.runs.finish(key, A, [], ending(Change([message("m1", text)])))
    for key, text in ((mine, "mine"), (theirs, "theirs")):
        delta = await process().threads.changes(key.thread)
        assert delta is not None
        said = [(one.id, one.data) for one in delta.messages]
        assert (delta.thread.key, said) == (key.thread, [("m1", message("m1", text).data)])


def test_a_name_that_fits_is_taken_as_it_is() -> None:
    assert actor_id("session:5f3a-b_c") == "session:5f3a-b_c"
    assert session_id("thread_1-A") == "thread_1-A"
    assert session_id("a" * 100) == "a" * 100


def test_no_two_have_one_name() -> None:
    hashed = session_id("a b")
    assert hashed.startswith(HASHED)
    assert len(hashed) <= 100
    assert session_id(hashed) != hashed
    assert len({*map(session_id, ODD)}) == len({*map(actor_id, ODD)}) == len(ODD)


async def test_a_list_knows_threads_by_their_own_ids(store: AgentCoreStore, process: Process) -> None:
    for name in ODD:
        await turn(store, 1, thread_id=name)
    threads = (await process().threads.list("owner")).items
    assert sorted(thread.key.thread_id for thread in threads) == sorted(ODD)
