"""The commands of the offline model, and the ends and token usage of runs whose model stalls, fails or never stops."""

import json

import pytest

from agui_container.conversation.stored_parts import CUT_OFF
from tests.behaviour.client import outcome, text, types
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import ClientThread, results
from tests.engine.doubles import wait_for_event

SAID = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]
CALLED = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]


@pytest.mark.wire
async def test_it_streams_as_much_as_it_is_told(thread: ClientThread) -> None:
    events = await thread.say("stream 300")
    assert types(events) == SAID
    assert text(events) == "hello world, " * 300


@pytest.mark.wire
async def test_it_thinks_before_it_answers(thread: ClientThread) -> None:
    events = await thread.say("think about rain")
    assert types(events) == [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        *SAID[1:],
    ]
    assert text(events) == "I have thought about rain."
    assert thread.messages[1]["content"] == "I am asked to think about rain. I will keep it short."


async def test_reasoning_is_given_back_to_the_model(thread: ClientThread) -> None:
    await thread.say("think about rain")
    assert text(await thread.say("think about snow")) == "I have thought about snow."
    thought = thread.prompts()[1]["messages"][1]
    assert (thought["role"], thought["content"]) == ("reasoning", thread.messages[1]["content"])


@pytest.mark.wire
async def test_several_calls_run_side_by_side_and_are_answered_in_order(thread: ClientThread) -> None:
    events = await thread.say(
        'call echo {"text": "one"}\ncall calculate {"expression": "1+1"}\ncall echo {"text": "two"}'
    )
    three = ["TOOL_CALL_START", "TOOL_CALL_ARGS"] * 3 + ["TOOL_CALL_END"] * 3 + ["TOOL_CALL_RESULT"] * 3
    assert types(events) == ["RUN_STARTED", *three, *SAID[1:]]
    assert results(events) == ["one", "2", "two"]
    assert text(events) == "The result of echo is one, and the result of calculate is 2, and the result of echo is two."


@pytest.mark.parametrize(
    "said", ["Grüße, 世界", "\U0001f600 \U0001f1e9\U0001f1ea", 'a "quoted"\nline \\ \t', "x" * 40_000]
)
async def test_arguments_arrive_as_they_were_written(thread: ClientThread, said: str) -> None:
    arguments = json.dumps({"text": said}, ensure_ascii=False)
    events = await thread.say(f"call echo {arguments}")
    assert results(events) == [said]
    assert thread.messages[1]["toolCalls"][0]["function"] == {"name": "echo", "arguments": arguments}


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ('calculate {"expression": "1/0"}', "Error: "),
        ('calculate {"formula": "1"}', "Error: calculate:"),
        ("calculate [1]", "Error: the arguments are not a JSON object."),
        ("calculate nonsense", "Error: the arguments are not valid JSON."),
        ("nobody {}", "Error: there is no tool named 'nobody'."),
        ("burst {}", "Error: the tool failed."),
        ("wipe {}", "Error: this tool is not allowed: never"),
    ],
)
async def test_a_call_that_fails_is_told_to_the_model_which_goes_on(
    thread: ClientThread, call: str, answer: str
) -> None:
    events = await thread.say(f"call {call}")
    assert types(events) == ["RUN_STARTED", *CALLED, *SAID[1:]]
    (result,) = results(events)
    assert result.startswith(answer)
    assert text(events).startswith(f"The call of {call.split(maxsplit=1)[0]} failed: ")
    assert "secret" not in str(events)
    assert text(await thread.say("stream 1")) == "hello world, "


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
