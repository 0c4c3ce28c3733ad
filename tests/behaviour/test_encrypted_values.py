"""Encrypted values of messages and calls: the thread keeps each with its type, as AG-UI 1.1 has it."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    ReasoningEncryptedValueEvent,
    ReasoningMessageChunkEvent,
    RunAgentInput,
    TextMessageChunkEvent,
    ToolCallChunkEvent,
    ToolCallResultEvent,
)

from agui_container.ports import Item
from tests.behaviour.test_threads import wait_for_thread
from tests.conftest import Connect
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

pytestmark = pytest.mark.durable

ENTITIES = {"thought": "message", "words": "message", "c1": "tool-call"}


def encrypted(entity: str, value: str, kind: str | None) -> ReasoningEncryptedValueEvent:
    """Return an encrypted value and its type, which is not a field of the classes of AG-UI 1.0."""
    event = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": ENTITIES[entity], "entityId": entity}
    typed = {"encryptedValueType": kind} if kind else {}
    return ReasoningEncryptedValueEvent.model_validate({**event, "encryptedValue": value, **typed})


async def think(run_input: RunAgentInput) -> AsyncIterator[Item]:
    """Say, think and call something, each with an encrypted value. A second run gives new values without a type."""
    if len(run_input.messages) == 1:
        yield ReasoningMessageChunkEvent(message_id="thought", delta="Hm.")
        yield TextMessageChunkEvent(message_id="words", delta="It rains.")
        yield ToolCallChunkEvent(tool_call_id="c1", tool_call_name="look", parent_message_id="words", delta="{}")
        yield ToolCallResultEvent(message_id="result", tool_call_id="c1", content="rain")
    kind = "test.seal" if run_input.run_id != "r3" else None
    for entity in ENTITIES:
        yield encrypted(entity, f"value of {run_input.run_id}", kind)


async def think_once(run_input: RunAgentInput) -> AsyncIterator[Item]:
    """Give encrypted values in the first run only."""
    if len(run_input.messages) == 1:
        async for item in think(run_input):
            yield item


def seals(thread: Json) -> list[tuple[str, str | None]]:
    """Return the values and types of a thread: the thought, the message and its call."""
    by_id = {message["id"]: message for message in thread["messages"]}
    holders = (by_id["thought"], by_id["words"], by_id["words"]["toolCalls"][0])
    return [(holder["encryptedValue"], holder.get("encryptedValueType")) for holder in holders]


@requirement("thread.encrypted")
async def test_a_thread_keeps_the_type_of_an_encrypted_value_and_replaces_it_with_the_value(connect: Connect) -> None:
    client = await connect(think)
    await client.run(ask())
    first = await wait_for_thread(client, lambda thread: thread["status"] == "user_turn")
    assert seals(first) == [("value of r1", "test.seal")] * 3
    await client.run(ask(run="r2", messages=[*first["messages"], {"id": "u2", "role": "user", "content": "And now?"}]))
    second = await wait_for_thread(client, lambda thread: len(thread["messages"]) == len(first["messages"]) + 1)
    assert [each for each in second["messages"] if each["id"] == "result"] == [
        each for each in first["messages"] if each["id"] == "result"
    ]
    await client.run(ask(run="r3", messages=[{"id": "u3", "role": "user", "content": "And then?"}]))
    third = await wait_for_thread(client, lambda thread: seals(thread)[0][0] == "value of r3")
    assert seals(third) == [("value of r3", None)] * 3


VALUE, KIND = "encryptedValue", "encryptedValueType"


def without(thread: Json, *names: str) -> list[Json]:
    """Return the messages of a thread as a client has them that does not know these fields."""
    return [
        {
            **{name: value for name, value in message.items() if name not in {*names, "toolCalls"}},
            **({"toolCalls": [{n: v for n, v in call.items() if n not in names} for call in calls]} if calls else {}),
        }
        for message in thread["messages"]
        for calls in [message.get("toolCalls")]
    ]


@pytest.mark.parametrize("unknown", [(VALUE, KIND), (KIND,)], ids=["of neither", "of 1.0"])
@requirement("thread.encrypted")
async def test_a_client_that_does_not_know_encrypted_values_does_not_remove_them(
    unknown: tuple[str, ...], connect: Connect
) -> None:
    client = await connect(think_once)
    await client.run(ask())
    first = await wait_for_thread(client, lambda thread: thread["status"] == "user_turn")
    again = {"id": "u2", "role": "user", "content": "And now?"}
    await client.run(ask(run="r2", messages=[*without(first, *unknown), again]))
    second = await wait_for_thread(client, lambda thread: len(thread["messages"]) == len(first["messages"]) + 1)
    assert seals(second) == [("value of r1", "test.seal")] * 3
