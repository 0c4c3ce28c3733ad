"""A client that makes new message ids for each request: the same conversation on every transport."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from ag_ui.core import RunAgentInput

from tests.behaviour.approval_tools import PAID
from tests.behaviour.client import Client, text
from tests.behaviour.conversations import PAINT, ClientThread, answer, calls, interrupts
from tests.behaviour.test_threads import wait_for_thread
from tests.conftest import Connect
from tests.engine.doubles import Json, ask


async def count_messages(asked: RunAgentInput) -> AsyncIterator[str]:
    yield f"{len(asked.messages)} messages"


class ClientWithoutIds:
    """A client that stores roles and texts, and makes new ids for each request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = count(1)
        self.talk: list[Json] = []

    async def say(self, words: str) -> str:
        self.talk.append({"role": "user", "content": words})
        number = next(self._numbers)
        messages = [{**message, "id": f"{number}-{n}"} for n, message in enumerate(self.talk)]
        said = text(await self._client.run(ask(run=f"r{number}", messages=messages)))
        self.talk.append({"role": "assistant", "content": said})
        return said


async def test_the_agent_sees_a_conversation_once(connect: Connect) -> None:
    client = ClientWithoutIds(await connect(count_messages))
    assert [await client.say("hi") for _ in range(4)] == ["1 messages", "3 messages", "5 messages", "7 messages"]


async def test_a_run_that_has_waited_adds_only_what_is_new(connect: Connect) -> None:
    may_end = asyncio.Event()

    async def waiting(asked: RunAgentInput) -> AsyncIterator[str]:
        yield f"{len(asked.messages)} messages"
        if len(asked.messages) > 1:
            await may_end.wait()

    client = await connect(waiting, on_busy="enqueue")
    forgetful = ClientWithoutIds(client)
    await forgetful.say("one")
    second, third = {"role": "user", "content": "two"}, {"role": "user", "content": "three"}
    streams = []
    for run, talk in (("r2", [*forgetful.talk, second]), ("r3", [*forgetful.talk, second, third])):
        messages = [{**message, "id": f"{run}-{n}"} for n, message in enumerate(talk)]
        streams.append(await client.start(ask(run=run, messages=messages)))
    may_end.set()
    assert [text(await stream.rest()) for stream in streams] == ["3 messages", "5 messages"]


async def run_with_new_ids(thread: ClientThread, said: str | None = None, **fields: object) -> list[Json]:
    """Start a run with new ids of messages and calls, and read it to its end. ``thread`` has the ids of the server."""
    body = thread.body(said, **fields)
    events = await thread.client.run(
        {**body, "messages": [with_new_ids(each, thread.runs) for each in body["messages"]]}
    )
    thread.keep(events)
    return events


def with_new_ids(message: Json, run: int) -> Json:
    copy = {**message, "id": f"{run}-{message['id']}"}
    if "toolCallId" in message:
        copy["toolCallId"] = f"{run}-{message['toolCallId']}"
    if "toolCalls" in message:
        copy["toolCalls"] = [{**call, "id": f"{run}-{call['id']}"} for call in message["toolCalls"]]
    return copy


async def roles(thread: ClientThread) -> list[str]:
    view = await wait_for_thread(thread.client, thread_id=thread.id)
    return [message["role"] for message in view["messages"]]


async def test_an_approval_is_answered_under_new_ids(thread: ClientThread) -> None:
    (interrupt,) = interrupts(await run_with_new_ids(thread, 'call pay {"amount": 5}'))
    events = await run_with_new_ids(thread, resume=[answer(interrupt, approved=True)])
    assert PAID[thread.id] == [5]
    assert text(events) == "The result of pay is paid 5."
    await run_with_new_ids(thread, "stream 1")
    assert await roles(thread) == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_a_client_answers_its_own_call_under_new_ids(thread: ClientThread) -> None:
    thread.tools = [PAINT]
    called = calls(await run_with_new_ids(thread, 'call paint {"wall": "north"}'))
    thread.result(called["paint"], "painted")
    assert text(await run_with_new_ids(thread)) == "The result of paint is painted."
    await run_with_new_ids(thread, "stream 1")
    assert await roles(thread) == ["user", "assistant", "tool", "assistant", "user", "assistant"]
