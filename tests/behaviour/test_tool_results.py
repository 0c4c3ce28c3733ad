"""Marks of failed tool results, for clients, for models and in stored threads."""

import json

from tests.behaviour.client import text
from tests.behaviour.conversations import ClientThread, answer, cancelled_answer, interrupts, results
from tests.engine.doubles import Json, eventually

LIE = "Error: disk full (from yesterday's log)"
ECHO = f"call echo {json.dumps({'text': LIE})}"


def marks(events: list[Json]) -> list[bool]:
    found = [event.get("metadata", {}) for event in events if event["type"] == "TOOL_CALL_RESULT"]
    return [metadata.get("failed", False) for metadata in found]


def durations(events: list[Json]) -> list[float | None]:
    found = [event.get("metadata", {}) for event in events if event["type"] == "TOOL_CALL_RESULT"]
    return [metadata.get("durationMs") for metadata in found]


async def prompted_results(thread: ClientThread) -> list[Json]:
    said: list[Json] = thread.prompts()[-1]["messages"]
    return [message for message in said if message["role"] == "tool"]


async def test_words_of_a_failure_are_none_where_the_tool_worked(thread: ClientThread) -> None:
    events = await thread.say(ECHO)
    assert (results(events), marks(events)) == ([LIE], [False])
    (told,) = await prompted_results(thread)
    assert told["content"] == LIE
    assert "error" not in told
    assert text(events) == f"The result of echo is {LIE}."


async def test_a_model_is_told_of_a_failure_in_every_later_run_too(thread: ClientThread) -> None:
    await thread.say(f"call burst {{}}\n{ECHO}")
    first = await prompted_results(thread)
    await thread.say("stream 1")
    assert await prompted_results(thread) == first


async def test_a_failure_is_kept_with_the_thread(thread: ClientThread) -> None:
    events = await thread.say(f"call burst {{}}\n{ECHO}")
    assert marks(events) == [True, False]
    service = thread.client.service
    await eventually(lambda: not service.registry.lives)
    back = await thread.client.run({"threadId": thread.id, "runId": "back", "messages": [], "tools": []})
    (shown,) = (event["messages"] for event in back if event["type"] == "MESSAGES_SNAPSHOT")
    kept = [message["metadata"] for message in shown if message["role"] == "tool"]
    assert kept == [event["metadata"] for event in events if event["type"] == "TOOL_CALL_RESULT"]


async def test_a_call_that_nobody_wanted_is_marked(thread: ClientThread) -> None:
    asked = interrupts(await thread.say('call pay {"amount": 1}\ncall pay {"amount": 2}\ncall pay {"amount": 3}'))
    answers = [answer(asked[0], approved=True), answer(asked[1], approved=False), cancelled_answer(asked[2])]
    events = await thread.resume(*answers)
    assert marks(events) == [False, True, True]
    assert [duration is None for duration in durations(events)] == [False, True, True]


async def test_failures_inside_a_subagent_are_marked_there(thread: ClientThread) -> None:
    events = await thread.say("delegate call nobody {}")
    assert marks(events) == [True, False]
    assert "subagentRunId" in next(event for event in events if event["type"] == "TOOL_CALL_RESULT")
