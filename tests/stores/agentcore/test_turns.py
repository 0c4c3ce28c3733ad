"""A turn is one event, made once; a process that has just started reads all of them, in order, as they were."""

import json
from typing import Any

import pytest

from agui_container.ports.records import Change, StoredMessage, ThreadKey, ThreadStatus
from agui_container.stores.agentcore import AgentCoreStore
from agui_container.stores.memory.data import Bounds
from tests.requirements import requirement
from tests.stores.agentcore.conftest import Process
from tests.stores.agentcore.doubles import answer, ids, stored_messages, turn, turn_messages, user
from tests.stores.agentcore.server import Fault, Memory
from tests.stores.doubles import THREAD, A, claim_run, ending, message, run


def conversation_of(event: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the part of an event that strategies see: roles and texts."""
    items = [item["conversational"] for item in event["payload"] if "conversational" in item]
    return [(item["role"], item["content"]["text"]) for item in items]


@requirement("memory.turn")
async def test_a_turn_is_one_event_with_what_was_said_in_it(store: AgentCoreStore, service: Memory) -> None:
    for n in (1, 2):
        await turn(store, n)
    first, second = service.requested_events()
    assert (first["actorId"], first["sessionId"], first["eventTimestamp"]) == ("owner", "t1", 1001.5)
    assert conversation_of(first) == [("USER", "question 1"), ("ASSISTANT", "answer 1")]
    assert conversation_of(second) == [("USER", "question 2"), ("ASSISTANT", "answer 2")]
    assert "question 1" not in json.dumps(second)


async def test_a_message_that_is_written_with_a_title_is_part_of_the_conversation(
    store: AgentCoreStore, service: Memory
) -> None:
    question, reply = turn_messages(1)
    key = run("r1")
    await claim_run(store, key, now=1001.0)
    await store.runs.change(key, A, 1001.0, Change([question]))
    await store.threads.rename(THREAD, "Chosen", 1001.2)
    await store.runs.finish(key, A, [], ending(Change([reply]), 1001.5))
    assert [conversation_of(event) for event in service.requested_events()] == [
        [("USER", "question 1")],
        [("ASSISTANT", "answer 1")],
    ]


async def test_a_message_that_a_title_writes_late_is_part_of_the_conversation(
    store: AgentCoreStore, service: Memory
) -> None:
    await turn(store, 1)
    service.faults.append(Fault(403, "AccessDeniedException"))
    await turn(store, 2)
    await store.threads.rename(THREAD, "Chosen", 2000.0)
    assert conversation_of(service.stored_events()[-1]) == [("USER", "question 2"), ("ASSISTANT", "answer 2")]


async def test_a_turn_costs_one_call_and_a_new_thread_one_more(store: AgentCoreStore, service: Memory) -> None:
    for n in (1, 2, 3):
        await turn(store, n)
    assert service.request_counts() == {"ListEvents": 1, "CreateEvent": 3}


async def test_a_new_process_has_the_threads_messages(store: AgentCoreStore, process: Process) -> None:
    for n in (1, 2, 3):
        await turn(store, n)
    restarted = process()
    assert await stored_messages(restarted) == [(each.id, each.data) for n in (1, 2, 3) for each in turn_messages(n)]
    thread = await restarted.threads.get(THREAD)
    assert thread is not None
    assert (thread.status, thread.active_run, thread.changed_at) == (ThreadStatus.USER_TURN, None, 1003.5)


async def test_a_new_process_goes_on_where_the_last_one_ended(process: Process, service: Memory) -> None:
    for n in (1, 2, 3):
        await turn(process(), n)
    assert await ids(process()) == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert [len(conversation_of(event)) for event in service.requested_events()] == [2, 2, 2]
    assert service.request_counts()["ListEvents"] == 4


@pytest.mark.parametrize(
    "data",
    [
        b'{ "id":"m",\n "role":"user" , "content":"spaces stay"}',
        '{"id":"m","role":"user","content":"Grüße \U0001f600 \u2028 \u0000"}'.encode(),
        rb'{"id":"m","role":"assistant","content":"\ud800 \" \\ {key=value}"}',
        b'{"role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"a"}}]}',
        b'{"role":"tool","toolCallId":"c","content":"result","encryptedValue":"x","error":"e"}',
        b'{"role":"reasoning","content":"thought","encryptedValue":"c2VhbGVk"}',
        b'{"role":"user","content":[{"type":"image","source":{"type":"data","value":"AAAA","mimeType":"image/png"}}]}',
        b"\xff not even UTF-8",
        b"",
    ],
)
async def test_messages_come_back_byte_for_byte(store: AgentCoreStore, process: Process, data: bytes) -> None:
    await turn(store, 1, Change([StoredMessage("m", data, "r1"), StoredMessage("\ud800 \u2028", data)], state=data))
    assert await stored_messages(process()) == [("m", data), ("\ud800 \u2028", data)]
    delta = await process().threads.changes(THREAD)
    assert delta is not None
    assert delta.state == data


@requirement("memory.pages")
async def test_more_than_a_hundred_turns_are_read_in_order(store: AgentCoreStore, service: Memory) -> None:
    for n in range(1, 251):
        await turn(store, n)
    before = service.request_counts()["ListEvents"]
    restarted = AgentCoreStore("chats-0123456789")
    assert await ids(restarted) == [f"{who}{n}" for n in range(1, 251) for who in "ua"]
    assert service.request_counts()["ListEvents"] - before == 3


async def test_turns_of_one_moment_stay_in_order(store: AgentCoreStore, process: Process) -> None:
    for n in range(1, 30):
        key = run(f"r{n}")
        await claim_run(store, key, now=7.0)
        await store.runs.finish(key, A, [], ending(Change([message(f"m{n}")]), 7.0))
    assert await ids(process()) == [f"m{n}" for n in range(1, 30)]


async def test_a_clock_that_is_behind_breaks_no_order(process: Process) -> None:
    for n in (9, 5, 1):
        await turn(process(), n)
    assert await ids(process()) == ["u9", "a9", "u5", "a5", "u1", "a1"]


async def test_an_edit_and_a_removal_are_read_as_such(store: AgentCoreStore, process: Process) -> None:
    for n in (1, 2):
        await turn(store, n)
    await turn(store, 3, Change([answer("a1", "better"), user("u3", "new")], order=["u1", "a1", "u3"]))
    assert await stored_messages(process()) == [
        ("u1", turn_messages(1)[0].data),
        ("a1", answer("a1", "better").data),
        ("u3", user("u3", "new").data),
    ]


async def test_an_end_that_is_told_twice_is_one_event(store: AgentCoreStore, service: Memory) -> None:
    key = await turn(store)
    await store.runs.finish(key, A, [], ending(Change([turn_messages(1)[1]]), 1001.5))
    assert len(service.stored_events()) == 1


@requirement("memory.turn")
async def test_an_event_whose_answer_was_lost_is_made_once(
    store: AgentCoreStore, service: Memory, pauses: list[int]
) -> None:
    service.faults.append(Fault(only="CreateEvent", after=True))
    await turn(store)
    assert (len(service.requested_events()), len(service.stored_events())) == (2, 1)
    assert len({event["clientToken"] for event in service.requested_events()}) == 1
    assert not store.take_warnings(THREAD)


async def test_the_same_turn_of_another_thread_or_run_is_another_event(store: AgentCoreStore, service: Memory) -> None:
    same = Change([message("m1")])
    await turn(store, 1, same)
    await turn(store, 1, same, thread_id="t2")
    await turn(store, 2, Change([message("m1", "changed")]))
    await turn(store, 3, same)
    assert len({event["clientToken"] for event in service.requested_events()}) == len(service.stored_events()) == 4


async def test_a_run_that_says_nothing_costs_no_event(store: AgentCoreStore, service: Memory) -> None:
    await turn(store, 1, Change())
    await turn(store, 2, Change([message("m1")]))
    await turn(store, 3, Change([message("m1")]))
    assert len(service.requested_events()) == 1


async def test_a_thread_that_memory_has_no_room_for_is_read_again(process: Process) -> None:
    store = process(bounds=Bounds(threads=2))
    for thread_id in ("t1", "t2", "t3"):
        await turn(store, 1, thread_id=thread_id)
    await turn(store, 2, thread_id="t1")
    assert await ids(store) == ["u1", "a1", "u2", "a2"]
    assert await ids(store, ThreadKey("owner", "t2")) == ["u1", "a1"]


async def test_events_of_somebody_else_are_left_alone(
    store: AgentCoreStore, process: Process, service: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    await turn(store)
    (event,) = service.stored_events()
    changes: list[dict[str, Any]] = [{}, {"payload": [{"blob": "no record"}]}, {"payload": []}]
    for n, change in enumerate(changes, 1):
        facts = {**event["metadata"], "agui.turn": {"stringValue": f"x{n}"}}
        service.events["owner", "t1"][f"000{n}#aa"] = {**event, "metadata": facts, "eventId": f"000{n}#aa", **change}
    del service.events["owner", "t1"]["0001#aa"]["metadata"]
    assert await ids(process()) == ["u1", "a1"]
    assert "turn record unreadable, skipped turn=x2" in caplog.text
