"""A turn is one event, made once; a process that has just started reads all of them, in order, as they were."""

import json
from typing import Any

import pytest

from agui_container.ports.records import Change, StoredMessage, ThreadStatus
from agui_container.stores.agentcore import AgentCoreStore
from tests.stores.agentcore.conftest import Process
from tests.stores.agentcore.doubles import ids, stored_messages, turn
from tests.stores.agentcore.server import Fault, Memory
from tests.stores.doubles import THREAD, get_thread, message


def conversation_of(event: dict[str, Any]) -> list[tuple[str, str]]:
    items = [item["conversational"] for item in event["payload"] if "conversational" in item]
    return [(item["role"], item["content"]["text"]) for item in items]


async def test_a_turn_is_one_event_with_what_was_said_in_it(store: AgentCoreStore, service: Memory) -> None:
    for n in (1, 2):
        await turn(store, n)
    first, second = service.requested_events()
    assert (first["actorId"], first["sessionId"], first["eventTimestamp"]) == ("owner", "t1", 1001.5)
    assert conversation_of(first) == [("USER", "question 1"), ("ASSISTANT", "answer 1")]
    assert conversation_of(second) == [("USER", "question 2"), ("ASSISTANT", "answer 2")]
    assert "question 1" not in json.dumps(second)


async def test_a_turn_costs_one_call_and_a_new_thread_one_more(store: AgentCoreStore, service: Memory) -> None:
    for n in (1, 2, 3):
        await turn(store, n)
    assert service.request_counts() == {"ListEvents": 1, "CreateEvent": 3}


async def test_a_new_process_goes_on_where_the_last_one_ended(process: Process, service: Memory) -> None:
    for n in (1, 2, 3):
        await turn(process(), n)
    restarted = process()
    assert await ids(restarted) == ["u1", "a1", "u2", "a2", "u3", "a3"]
    thread = await get_thread(restarted)
    assert (thread.status, thread.active_run, thread.changed_at) == (ThreadStatus.USER_TURN, None, 1003.5)
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
    delta = await process().thread(THREAD)
    assert delta is not None
    assert delta.state == data


async def test_more_than_a_hundred_turns_are_read_in_order(store: AgentCoreStore, service: Memory) -> None:
    for n in range(1, 251):
        await turn(store, n)
    before = service.request_counts()["ListEvents"]
    restarted = AgentCoreStore("chats-0123456789")
    assert await ids(restarted) == [f"{who}{n}" for n in range(1, 251) for who in "ua"]
    assert service.request_counts()["ListEvents"] - before == 3


async def test_an_event_whose_answer_was_lost_is_made_once(
    store: AgentCoreStore, service: Memory, pauses: list[int]
) -> None:
    service.faults.append(Fault(only="CreateEvent", after=True))
    await turn(store)
    assert (len(service.requested_events()), len(service.stored_events())) == (2, 1)
    assert len({event["clientToken"] for event in service.requested_events()}) == 1
    assert not store.take_warnings(THREAD)


async def test_a_run_that_says_nothing_costs_no_event(store: AgentCoreStore, service: Memory) -> None:
    await turn(store, 1, Change())
    await turn(store, 2, Change([message("m1")]))
    await turn(store, 3, Change([message("m1")]))
    assert len(service.requested_events()) == 1
