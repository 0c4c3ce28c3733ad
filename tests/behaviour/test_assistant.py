"""The commands of the offline model, over every transport."""

import json

import pytest

from tests.behaviour.client import text, types
from tests.behaviour.conversations import ClientThread, results

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


@pytest.mark.wire
async def test_it_hands_work_to_a_subagent_and_says_what_came_of_it(thread: ClientThread) -> None:
    events = await thread.say("delegate calculate 6*7")
    assert [name for name in types(events) if name.startswith("SUBAGENT")] == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
    inner = [event for event in events if "subagentRunId" in event]
    outer = [event for event in events if "subagentRunId" not in event]
    assert results(inner) == ["42"]
    assert text(inner) == "The result of calculate is 42."
    assert text(outer) == "The result of delegate is The result of calculate is 42."
    assert text(await thread.say("stream 1")) == "hello world, "
