"""A client that makes new message ids for each request has one conversation, in every store and after a restart."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from ag_ui.core import Message, RunAgentInput, TextMessageChunkEvent, ToolCallChunkEvent, ToolCallResultEvent

from agui_container.agents.assistant.assistant import Assistant
from agui_container.engine.engine import Engine
from agui_container.engine.persistence.cluster import Cluster
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, Permission, PolicyDecision
from agui_container.ports.records import ThreadKey
from agui_container.ports.store import Store
from agui_container.stores.memory import MemoryStore
from tests.agents.doubles import answering
from tests.behaviour.client import outcome
from tests.behaviour.conversations import PAINT, answer, interrupts
from tests.behaviour.inprocess import InProcess
from tests.behaviour.test_threads import wait_for_thread
from tests.buses.memory_bus import MemoryBus
from tests.engine.doubles import FakeClock, Json, ask, asking, caller, envelopes, eventually, make_service
from tests.requirements import requirement
from tests.stores.conftest import Replica

THREAD = ThreadKey("everybody", "t1")
CALL: Json = {"id": "my-call", "type": "function", "function": {"name": "add", "arguments": '{"b":2, "a":1}'}}


class Calculator:
    """Adds with a call in every turn, lets a subagent speak, and notes what it is shown."""

    def __init__(self) -> None:
        self.seen: list[Sequence[Message]] = []

    async def run(self, asked: RunAgentInput) -> AsyncIterator[Item]:
        self.seen.append(asked.messages)
        turn = len(self.seen)
        arguments = '{"a": 1, "b": 2}'
        yield ToolCallChunkEvent(
            tool_call_id=f"call-{turn}", tool_call_name="add", parent_message_id=f"calls-{turn}", delta=arguments
        )
        yield ToolCallResultEvent(message_id=f"result-{turn}", tool_call_id=f"call-{turn}", content="3")
        yield TextMessageChunkEvent(message_id=f"answer-{turn}", delta=f"Answer {turn}.")


async def turn(store: Store, agent: Calculator, number: int, messages: Sequence[Json]) -> list[str]:
    """Run one request on a server of its own. Returns the ids of the thread's messages, in order."""
    service = await open_service(store, agent)
    sent = [{**message, "id": f"{number}-{position}"} for position, message in enumerate(messages)]
    await envelopes(await service.admit(asking(run=f"r{number}", messages=sent), caller()))
    await eventually(lambda: not service.registry.recorder_tasks and not service.registry.tasks)
    kept = await store.threads.changes(THREAD)
    assert kept is not None
    return [message.id for message in kept.messages]


async def open_service(store: Store, agent: Calculator) -> Engine:
    clock = FakeClock()
    cluster = Cluster(store, MemoryBus(), clock, durable=not isinstance(store, MemoryStore), new_id=lambda: "replica-1")
    return make_service(agent, clock=clock, cluster=cluster)


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def answer_messages(number: int) -> list[Json]:
    """One turn's answer, as the client keeps it: with a call id and a spelling of its own."""
    return [
        {"role": "assistant", "content": "", "toolCalls": [CALL]},
        {"role": "tool", "toolCallId": "my-call", "content": [{"type": "text", "text": "3"}]},
        {"role": "assistant", "content": f"Answer {number}."},
    ]


@requirement("thread.new-ids")
async def test_a_conversation_under_new_ids_is_kept_once(replica: Replica) -> None:
    agent, talk, ids = Calculator(), list[Json](), list[str]()
    for number in range(1, 4):
        talk.append(user(f"question {number}"))
        ids = await turn(await replica(), agent, number, talk)
        talk += answer_messages(number)
    assert [len(seen) for seen in agent.seen] == [1, 5, 9]
    assert [message.id for message in agent.seen[2]] == [
        *("1-0", "calls-1", "result-1", "answer-1"),
        *("2-4", "calls-2", "result-2", "answer-2"),
        "3-8",
    ]
    assert ids == [*(message.id for message in agent.seen[2]), "calls-3", "result-3", "answer-3"]


@requirement("thread.new-ids")
async def test_an_edit_under_new_ids_takes_the_place_of_what_followed(replica: Replica) -> None:
    agent = Calculator()
    await turn(await replica(), agent, 1, [user("one")])
    await turn(await replica(), agent, 2, [user("one"), *answer_messages(1), user("two")])
    ids = await turn(await replica(), agent, 3, [user("one"), *answer_messages(1), user("zwei")])
    first = ["1-0", "calls-1", "result-1", "answer-1"]
    assert ids == [*first, "3-4", "calls-3", "result-3", "answer-3"]
    ids = await turn(await replica(), agent, 4, [user("one"), *answer_messages(1), user("zwei")])
    assert ids == [*first, "3-4", "calls-4", "result-4", "answer-4"]


# --- results that hold no text ----------------------------------------------------------------------------------------


ODD, REPAIRED = "nul \0, half \ud83d, whole \U0001f600", "nul \0, half \ufffd, whole \U0001f600"


def ask_first(_: str) -> PolicyDecision:
    return PolicyDecision(Permission.ASK)


def paint(text: str) -> str:
    return f"call paint {json.dumps({'a': text}, ensure_ascii=False)}"


def connect(store: Store) -> InProcess:
    """Return a client of an assistant with a store."""
    assistant = replace(Assistant(OfflineModel(), [answering("odd", ODD)]), policy=ask_first).with_store(store)
    clock = FakeClock()
    cluster = Cluster(store, MemoryBus(), clock, durable=True, new_id=lambda: "replica-1")
    return InProcess(make_service(assistant, clock=clock, cluster=cluster), clock, by_session=True)


def contents(thread: Json, role: str) -> list[str]:
    return [message.get("content", "") for message in thread["messages"] if message["role"] == role]


@requirement("assistant.half-pairs")
@pytest.mark.parametrize("approved", [True, False])
async def test_results_of_the_server_and_of_the_client_are_stored(replica: Replica, *, approved: bool) -> None:
    client = connect(await replica())
    (interrupt,) = interrupts(await client.run(ask(text="call odd {}")))
    reason = {} if approved else {"reason": "nul \0"}
    resume = [{**answer(interrupt, approved=approved), "payload": {"approved": approved, **reason}}]
    await client.run(ask(run="r2", messages=[], resume=resume))
    await client.run(ask(run="r3", messages=[{"id": "u2", "role": "user", "content": paint(ODD)}], tools=[PAINT]))
    thread = await wait_for_thread(client, lambda thread: thread["status"] == "client_tool_turn")
    (call,) = thread["messages"][-1]["toolCalls"]
    result = {"id": "result \0", "role": "tool", "toolCallId": call["id"], "content": ODD}
    assert outcome(await client.run(ask(run="r4", messages=[result], tools=[PAINT]))) == "success"
    await wait_for_thread(client, lambda thread: thread["status"] == "user_turn")
    again = await wait_for_thread(connect(await replica()), lambda thread: thread["status"] == "user_turn")
    expected = REPAIRED if approved else "Error: the user denied this call: nul \0"
    assert contents(again, "tool") == [expected, REPAIRED]
    assert contents(again, "user") == ["call odd {}", paint(REPAIRED)]
    assert again["messages"][-2]["id"] == "result \0"
