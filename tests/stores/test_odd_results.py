"""Results with NUL and half of a surrogate pair: the conversation goes on and is stored, whatever the store."""

import json
from dataclasses import replace

import pytest

from agui_container.agents.assistant.assistant import Assistant
from agui_container.buses.memory import MemoryBus
from agui_container.engine.persistence.cluster import Cluster
from agui_container.models.offline import OfflineModel
from agui_container.ports import Permission, PolicyDecision
from agui_container.ports.store import Store
from tests.agents.doubles import answering
from tests.behaviour.client import outcome
from tests.behaviour.conversations import PAINT, answer, interrupts
from tests.behaviour.inprocess import InProcess
from tests.behaviour.test_threads import wait_for_thread
from tests.engine.doubles import FakeClock, Json, ask, make_service
from tests.requirements import requirement
from tests.stores.conftest import Replica

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
