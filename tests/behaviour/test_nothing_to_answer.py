"""Runs that leave a model nothing to answer: refused with the reason, for every model, before the model is called."""

import base64

from tests.behaviour.client import outcome, text
from tests.behaviour.conftest import ConnectModel, ServeOver
from tests.behaviour.conversations import PAINT, ClientThread
from tests.behaviour.dialogues import ERROR, SUCCESS
from tests.engine.doubles import Json
from tests.requirements import requirement

NOTHING = "messages: there is nothing to answer. "
ALL_ANSWERED = "messages: the assistant has answered everything. "
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
ELSEWHERE: Json = {"type": "url", "value": "https://a.example/b.png"}
FOREIGN: Json = {"type": "file", "value": "file-1"}
BROKEN: Json = {"type": "data", "value": "no base64!", "mimeType": "image/png"}


def user(content: object) -> Json:
    return {"id": "m", "role": "user", "content": content}


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


@requirement("assistant.nothing")
async def test_a_model_is_not_asked_with_nothing_to_answer(connect_model: ConnectModel) -> None:
    first = await connect_model()
    for message in EMPTY.values():
        thread = ClientThread(first.client, first.model, messages=[message])
        events = await thread.say()
        assert (outcome(events), events[-1]["message"].startswith(NOTHING)) == ("VALIDATION_ERROR", True)
    assert await first.model.prompts() == []


@requirement("assistant.nothing")
async def test_a_model_is_not_asked_again_after_its_answer(connect_model: ConnectModel) -> None:
    thread = await connect_model()
    await thread.say("stream 1")
    for empty in (None, " "):
        events = await thread.say(empty)
        assert (outcome(events), events[-1]["message"].startswith(ALL_ANSWERED)) == ("VALIDATION_ERROR", True)
    assert text(await thread.say("stream 1")) == "hello world, "
    prompts = await thread.model.prompts()
    assert len(prompts) == 2
    assert "Continue." not in str(prompts)


@requirement("assistant.nothing")
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


@requirement("assistant.nothing")
async def test_a_result_that_comes_after_words_is_answered(connect_model: ConnectModel) -> None:
    thread = await connect_model()
    thread.tools.append(PAINT)
    await thread.say("call paint {}")
    (call,) = thread.messages[-1]["toolCalls"]
    thread.messages.append({"id": "words", "role": "assistant", "content": "One moment."})
    thread.result(call["id"], "blue")
    assert "the result of paint is blue" in text(await thread.say()).lower()


@requirement("assistant.nothing", "protocol.same")
async def test_a_blank_message_fails_its_turn_over_every_protocol(serve_over: ServeOver) -> None:
    dialogue = (await serve_over()).dialogue()
    blank = await dialogue.say(" ")
    assert (blank.end, NOTHING in str(blank.error)) == (ERROR, True)
    assert (await dialogue.say("stream 1")).end == SUCCESS
