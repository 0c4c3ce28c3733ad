"""Ends and token usage of assistant runs whose model stalls, fails, or never stops."""

import pytest

from agui_container.conversation.stored_parts import CUT_OFF
from tests.behaviour.client import outcome, text, types
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import ClientThread, results
from tests.engine.doubles import wait_for_event

PROMPT = "Be brief and kind."


@pytest.mark.wire
async def test_the_usage_of_every_model_call_is_added_up(connect_model: ConnectModel) -> None:
    thread = await connect_model(system_prompt=PROMPT)
    events = await thread.say("calculate 6*7")
    assert text(events) == "The result of calculate is 42."
    asked, answered = 4 + 2, 4 + 2 + 3 + 1  # the prompt and what was said; the same with the call and its result
    counts = {"inputTokens": asked + answered, "outputTokens": 3 + 6, "totalTokens": asked + answered + 3 + 6}
    assert events[-1]["usage"] == [{"provider": "offline", "model": "offline", **counts}]


@pytest.mark.wire
async def test_a_model_that_fails_in_the_middle_ends_the_run_and_not_the_conversation(thread: ClientThread) -> None:
    events = await thread.say("fail")
    assert types(events)[1:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_ERROR"]
    assert (text(events), outcome(events)) == ("About to fail. ", "MODEL_ERROR")
    assert "secret" not in str(events)
    assert len(thread.prompts()) == 1
    assert text(await thread.say("stream 1")) == "hello world, "


@pytest.mark.wire
async def test_a_cancel_ends_the_wait_for_a_model(thread: ClientThread) -> None:
    stream = await thread.start("wait 3600")
    await stream.until("TEXT_MESSAGE_CONTENT")
    assert (await thread.client.cancel(thread.id))["status"] == "cancelled"
    events = await stream.rest()
    assert (types(events), outcome(events)) == (["TEXT_MESSAGE_END", "RUN_FINISHED"], "cancelled")
    await wait_for_event(thread.model.idle)
    assert text(await thread.say("stream 1")) == "hello world, "


@pytest.mark.wire
async def test_a_model_is_let_go_when_its_last_reader_leaves(connect_model: ConnectModel) -> None:
    thread = await connect_model(on_disconnect="cancel")
    stream = await thread.start("wait 3600")
    await stream.until("TEXT_MESSAGE_CONTENT")
    await stream.leave()
    await wait_for_event(thread.model.idle)
    assert text(await thread.say("stream 1")) == "hello world, "


async def test_a_cancel_ends_the_wait_for_a_tool(thread: ClientThread) -> None:
    stream = await thread.start("call stick {}")
    await stream.until("TOOL_CALL_END")
    await thread.client.cancel(thread.id)
    events = await stream.rest()
    assert outcome(events) == "cancelled"
    assert set(results(events)) <= {CUT_OFF}  # none if the call was not started
    assert text(await thread.say("stream 1")) == "hello world, "


@pytest.mark.parametrize("said", ["hi", "Grüße, \U0001f600", "  spaces  and\n\nlines "])
async def test_a_model_is_told_the_whole_conversation(thread: ClientThread, said: str) -> None:
    await thread.say(said)
    await thread.say('call echo {"text": "one"}')
    await thread.say("stream 1")
    last = thread.prompts()[-1]["messages"]
    roles = ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert [message["role"] for message in last] == roles
    assert [last[at]["content"] for at in (0, 2, 4, 6)] == [said, 'call echo {"text": "one"}', "one", "stream 1"]
