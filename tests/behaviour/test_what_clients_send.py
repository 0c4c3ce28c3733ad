"""Inputs as clients in the field send them: what is understood, and what is refused by the name of its field."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui import core as ag

from agui_container.assistant.assistant import Assistant
from agui_container.ports import Item, ToolCallDelta
from agui_container.protocol.client_input import describe_click
from tests.agents.doubles import DONE, ScriptedModel, answering
from tests.behaviour.client import outcome, text
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import PAINT, ClientThread
from tests.behaviour.subagents import of_type
from tests.behaviour.test_threads import run_and_wait, wait_for_thread
from tests.conftest import Connect
from tests.engine.doubles import Json, ask


async def show(run_input: ag.RunAgentInput) -> AsyncIterator[Item]:
    given = run_input.model_dump(by_alias=True, mode="json", exclude_none=True)
    yield ag.CustomEvent(name="given", value={"messages": given["messages"], "tools": given["tools"]})


async def given(connect: Connect, **fields: Any) -> Json:  # noqa: ANN401 - as in JSON
    client = await connect(show)
    events = await client.run(ask(**fields))
    assert outcome(events) == "success"
    (value,) = [event["value"] for event in events if event["type"] == "CUSTOM"]
    found: Json = value
    return found


def user(content: object, message_id: str = "u") -> Json:
    return {"id": message_id, "role": "user", "content": content}


async def test_half_of_a_symbol_becomes_a_replacement_character(connect: Connect) -> None:
    found = await given(connect, messages=[user("a\ud83d \ud83d\ude00 \\ud83d")])
    assert found["messages"][0]["content"] == "a\ufffd \U0001f600 \\ud83d"


def without_values(message: ag.Message) -> ag.Message:
    """Return the message as a client has it that knows no opaque values."""
    if not isinstance(message, ag.AssistantMessage) or not message.tool_calls:
        return message
    calls = [ag.ToolCall(id=call.id, function=call.function) for call in message.tool_calls]
    return message.model_copy(update={"tool_calls": calls})


@pytest.mark.parametrize("resends", [False, True])
async def test_the_next_turn_has_the_value_of_the_call(resends: bool, connect: Connect) -> None:  # noqa: FBT001
    model = ScriptedModel([[ToolCallDelta(0, "{}", "add", "sealed")], DONE, DONE])
    server = await connect(Assistant(model, [answering("add")]))
    first = ask(text="go")
    events = await server.run(first)
    (value,) = of_type(events, "REASONING_ENCRYPTED_VALUE")
    (call,) = of_type(events, "TOOL_CALL_START")
    assert (value["subtype"], value["entityId"], value["encryptedValue"]) == ("tool-call", call["toolCallId"], "sealed")

    history = [without_values(message).model_dump(by_alias=True) for message in model.prompts[1].messages]
    user = {"id": "again", "role": "user", "content": "again"}
    await server.run({**first, "runId": "second", "messages": [*(history if resends else ()), user]})
    (sent,) = [
        call for m in model.prompts[2].messages if isinstance(m, ag.AssistantMessage) for call in m.tool_calls or ()
    ]
    assert sent.encrypted_value == "sealed"


ENTITIES = {"thought": "message", "words": "message", "c1": "tool-call"}


def encrypted(entity: str, value: str, kind: str | None) -> ag.ReasoningEncryptedValueEvent:
    """Return an encrypted value and its type, which is not a field of the classes of AG-UI 1.0."""
    event = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": ENTITIES[entity], "entityId": entity}
    typed = {"encryptedValueType": kind} if kind else {}
    return ag.ReasoningEncryptedValueEvent.model_validate({**event, "encryptedValue": value, **typed})


async def think(run_input: ag.RunAgentInput) -> AsyncIterator[Item]:
    """Say, think and call something, each with an encrypted value. A second run gives new values without a type."""
    if len(run_input.messages) == 1:
        yield ag.ReasoningMessageChunkEvent(message_id="thought", delta="Hm.")
        yield ag.TextMessageChunkEvent(message_id="words", delta="It rains.")
        yield ag.ToolCallChunkEvent(tool_call_id="c1", tool_call_name="look", parent_message_id="words", delta="{}")
        yield ag.ToolCallResultEvent(message_id="result", tool_call_id="c1", content="rain")
    kind = "test.seal" if run_input.run_id != "r3" else None
    for entity in ENTITIES:
        yield encrypted(entity, f"value of {run_input.run_id}", kind)


async def think_once(run_input: ag.RunAgentInput) -> AsyncIterator[Item]:
    if len(run_input.messages) == 1:
        async for item in think(run_input):
            yield item


def seals(thread: Json) -> list[tuple[str, str | None]]:
    """Return the values and types of a thread: the thought, the message and its call."""
    by_id = {message["id"]: message for message in thread["messages"]}
    holders = (by_id["thought"], by_id["words"], by_id["words"]["toolCalls"][0])
    return [(holder["encryptedValue"], holder.get("encryptedValueType")) for holder in holders]


@pytest.mark.durable
async def test_a_thread_keeps_the_type_of_an_encrypted_value_and_replaces_it_with_the_value(connect: Connect) -> None:
    client = await connect(think)
    first = await run_and_wait(client, ask())
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
    return [
        {
            **{name: value for name, value in message.items() if name not in {*names, "toolCalls"}},
            **({"toolCalls": [{n: v for n, v in call.items() if n not in names} for call in calls]} if calls else {}),
        }
        for message in thread["messages"]
        for calls in [message.get("toolCalls")]
    ]


@pytest.mark.parametrize("unknown", [(VALUE, KIND), (KIND,)], ids=["of neither", "of 1.0"])
@pytest.mark.durable
async def test_a_client_that_does_not_know_encrypted_values_does_not_remove_them(
    unknown: tuple[str, ...], connect: Connect
) -> None:
    client = await connect(think_once)
    first = await run_and_wait(client, ask())
    again = {"id": "u2", "role": "user", "content": "And now?"}
    await client.run(ask(run="r2", messages=[*without(first, *unknown), again]))
    second = await wait_for_thread(client, lambda thread: len(thread["messages"]) == len(first["messages"]) + 1)
    assert seals(second) == [("value of r1", "test.seal")] * 3


NOTHING = "messages: there is nothing to answer. "
ALL_ANSWERED = "messages: the assistant has answered everything. "
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
ELSEWHERE: Json = {"type": "url", "value": "https://a.example/b.png"}
FOREIGN: Json = {"type": "file", "value": "file-1"}
BROKEN: Json = {"type": "data", "value": "no base64!", "mimeType": "image/png"}


def picture(source: Json) -> Json:
    return {"type": "image", "source": source}


EMPTY: dict[str, Json] = {
    "a result of no call": {"id": "m", "role": "tool", "toolCallId": "c", "content": "42"},
    "an activity": {"id": "m", "role": "activity", "activityType": "plan", "content": {"a": 1}},
    "an instruction": {"id": "m", "role": "system", "content": "Say something."},
    "a thought": {"id": "m", "role": "reasoning", "content": "Hm."},
    "no text": user(""),
    "blank text": user(" \n"),
    "no parts": user([]),
    "blank parts": user([{"type": "text", "text": " "}]),
    "a retired part": user([{"type": "binary", "mimeType": "image/png", "id": "f1"}]),
    "unusable parts": user([picture(ELSEWHERE), picture(FOREIGN), picture(BROKEN)]),
}


async def test_a_model_is_not_asked_with_nothing_to_answer(connect_model: ConnectModel) -> None:
    first = await connect_model()
    for message in EMPTY.values():
        thread = ClientThread(first.client, first.model, messages=[message])
        events = await thread.say()
        assert (outcome(events), events[-1]["message"].startswith(NOTHING)) == ("VALIDATION_ERROR", True)
    assert first.prompts() == []


async def test_a_model_is_not_asked_again_after_its_answer(thread: ClientThread) -> None:
    await thread.say("stream 1")
    for empty in (None, " "):
        events = await thread.say(empty)
        assert (outcome(events), events[-1]["message"].startswith(ALL_ANSWERED)) == ("VALIDATION_ERROR", True)
    assert text(await thread.say("stream 1")) == "hello world, "
    prompts = thread.prompts()
    assert len(prompts) == 2
    assert "Continue." not in str(prompts)


async def test_media_and_unanswered_messages_are_something_to_answer(connect_model: ConnectModel) -> None:
    first = await connect_model()
    inline = picture({"type": "url", "value": f"data:image/png;base64,{PNG}"})
    for messages in (
        [user([inline])],
        [{**user("hello"), "id": "m0"}, user("")],
        [{**user("hello"), "id": "m0"}, {"id": "m", "role": "system", "content": "Obey."}],
    ):
        thread = ClientThread(first.client, first.model, messages=messages)
        assert outcome(await thread.say()) == "success"


async def test_a_result_that_comes_after_words_is_answered(thread: ClientThread) -> None:
    thread.tools.append(PAINT)
    await thread.say("call paint {}")
    (call,) = thread.messages[-1]["toolCalls"]
    thread.messages.append({"id": "words", "role": "assistant", "content": "One moment."})
    thread.result(call["id"], "blue")
    assert "the result of paint is blue" in text(await thread.say()).lower()


CLICK: Json = {"name": "buy", "surfaceId": "shop", "sourceComponentId": "b1", "context": {"item": "tea"}}


@pytest.mark.parametrize("sends_history", [True, False])
async def test_a_click_in_an_a2ui_surface_is_a_turn(sends_history: bool, thread: ClientThread) -> None:  # noqa: FBT001
    await thread.say("hello")
    sent: Json = {} if sends_history else {"messages": []}
    events = await thread.say(forwardedProps={"a2uiAction": {"userAction": CLICK}}, **sent)
    assert outcome(events) == "success"
    _, loaded, *_ = await thread.client.run(thread.body(messages=[]))
    assert [message["role"] for message in loaded["messages"]] == [
        *("user", "assistant"),
        *("assistant", "tool", "assistant"),
    ]


async def test_a_click_that_the_middleware_has_written_is_not_written_again(connect: Connect) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "log_a2ui_event", "arguments": "{}"}}
    written = [
        {"id": "a", "role": "assistant", "toolCalls": [call]},
        {"id": "r", "role": "tool", "toolCallId": "c", "content": describe_click(CLICK)},
    ]
    click = {"a2uiAction": {"userAction": CLICK}}
    found = await given(connect, messages=[user("hi"), *written], forwardedProps=click)
    assert [message["id"] for message in found["messages"]] == ["u", "a", "r"]
    found = await given(connect, messages=[user("hi")], forwardedProps=click)
    assert [message["id"] for message in found["messages"]] == ["u", "a2ui-r1", "a2ui-result-r1"]


async def test_a_click_after_a_click_without_an_answer_is_another_one(connect: Connect) -> None:
    click = {"a2uiAction": {"userAction": CLICK}}
    first = (await given(connect, messages=[user("hi")], forwardedProps=click))["messages"]
    for message in first[1:]:
        message["id"] = message["id"].replace("r1", "r0")
    found = await given(connect, messages=first, forwardedProps=click)
    assert [message["id"] for message in found["messages"]][-2:] == ["a2ui-r1", "a2ui-result-r1"]


CALLS = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "abcd"]
FAILED: list[Json] = [
    {"content": "", "error": "no paint"},
    {"content": "half", "error": "no paint"},
    {"content": "Error: no paint left", "error": "no paint"},
    {"content": [{"type": "text", "text": "half"}], "error": "no paint"},
]
"""Failed results. The content of the third one has the reason already."""


async def test_the_reason_of_a_failed_result_is_in_its_content_for_the_agent_alone(connect: Connect) -> None:
    seen: list[ag.Message] = []

    async def show_messages(run_input: ag.RunAgentInput) -> AsyncIterator[Item]:
        seen[:] = run_input.messages
        yield ag.MessagesSnapshotEvent(messages=run_input.messages)

    sent = [
        {"id": f"result-{call['id']}", "role": "tool", "toolCallId": call["id"], **failed}
        for call, failed in zip(CALLS, FAILED, strict=True)
    ]
    messages = [user("go"), {"id": "calls", "role": "assistant", "toolCalls": CALLS}, *sent]
    client = await connect(show_messages)
    events = await client.run(ask(messages=messages))
    contents = [message.content for message in seen if isinstance(message, ag.ToolMessage)]
    assert contents[:3] == ["no paint", "half\nno paint", "Error: no paint left"]
    assert contents[3] == [ag.TextPart(text="half"), ag.TextPart(text="no paint")]
    (snapshot,) = of_type(events, "MESSAGES_SNAPSHOT")
    assert snapshot["messages"][2:] == sent
    assert (await wait_for_thread(client))["messages"][2:] == sent
