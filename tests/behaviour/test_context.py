"""The context window: events about its content and its cuts, and skills that clients request by name."""

from typing import Any

import pytest

from agui_container.assistant.assistant import Assistant
from agui_container.assistant.context_window.window import ContextBudget, Overflow
from agui_container.assistant.prompt.skills import Skill
from agui_container.assistant.subagents import Subagent
from agui_container.models.offline import OfflineModel
from agui_container.tools.builtin import builtin_tools
from tests.behaviour.client import outcome, text, types
from tests.conftest import Connect
from tests.engine.doubles import Json, ask

TEA = Skill("tea", "Make tea.", "Boil water for $ARGUMENTS.")
PROMPT = "Be kind."


def assistant(tokens: int = 0, overflow: Overflow = Overflow.TRIM, skills: tuple[Skill, ...] = ()) -> Assistant:
    budget = ContextBudget(tokens, overflow)
    return Assistant(OfflineModel(), builtin_tools(), PROMPT, skills=skills, budget=budget)


def input_after_turns(turns: int, said: str) -> Json:
    """Return a run input after a number of turns of 20 words each."""
    words = "word " * 10
    pairs = ([("user", f"u{at}"), ("assistant", f"a{at}")] for at in range(turns))
    history: list[Json] = [{"id": name, "role": role, "content": words} for pair in pairs for role, name in pair]
    return ask(messages=[*history, {"id": "now", "role": "user", "content": said}])


def custom(events: list[Json], name: str) -> list[Any]:
    return [event["value"] for event in events if event["type"] == "CUSTOM" and event["name"] == name]


async def test_without_a_budget_nothing_is_told(connect: Connect) -> None:
    client = await connect(assistant())
    events = await client.run(input_after_turns(100, "think"))
    assert "CUSTOM" not in types(events)


async def test_a_snapshot_follows_each_model_call_and_agrees_with_the_usage(connect: Connect) -> None:
    client = await connect(assistant(1_000))
    events = await client.run(input_after_turns(1, "calculate 1+1"))
    first, last = custom(events, "context.snapshot")
    assert (first["historyMessages"], first["runMessages"], last["runMessages"]) == (2, 2, 4)
    assert [row["role"] for row in last["messages"]] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert last["totalTokens"] + last["remainingTokens"] == last["contextSize"] == 1_000
    charged = sum(value["totalTokens"] - value["toolTokens"] for value in (first, last))
    assert events[-1]["usage"][0]["totalTokens"] == charged


async def test_a_subagents_window_is_told_as_the_subagents(connect: Connect) -> None:
    helper = Subagent("helper", "Helps.", assistant(1_000))
    client = await connect(Assistant(OfflineModel(), [helper], PROMPT))
    events = await client.run(ask(text='call helper {"task": "think"}'))
    (started,) = [event for event in events if event["type"] == "SUBAGENT_STARTED"]
    (told,) = [event for event in events if event["type"] == "CUSTOM"]
    assert (told["name"], told["subagentRunId"]) == ("context.snapshot", started["subagentRunId"])


@pytest.mark.parametrize(("operator", "caller", "size"), [(1_000, 200, 200), (200, 1_000, 200), (0, 200, 200)])
async def test_a_caller_may_ask_for_a_smaller_window(connect: Connect, operator: int, caller: int, size: int) -> None:
    client = await connect(assistant(operator))
    events = await client.run(
        {**input_after_turns(20, "think"), "forwardedProps": {"budget": {"contextTokens": caller}}}
    )
    assert types(events)[:3] == ["RUN_STARTED", "CUSTOM", "REASONING_START"]
    (told,), (held,) = custom(events, "context.compacted"), custom(events, "context.snapshot")
    assert held["contextSize"] == size
    assert (told["strategy"], told["messagesBefore"]) == ("trim", 41)
    assert told["tokensAfter"] <= size < told["tokensBefore"]
    assert held["historyMessages"] + 1 == told["messagesAfter"]
    assert outcome(events) == "success"


async def test_the_window_that_a_caller_asks_for_is_that_of_its_subagents_too(connect: Connect) -> None:
    client = await connect(Assistant(OfflineModel(), [Subagent("helper", "Helps.", assistant())], PROMPT))
    budget = {"budget": {"contextTokens": 500}}
    events = await client.run(ask(text='call helper {"task": "think"}', forwardedProps=budget))
    assert [value["contextSize"] for value in custom(events, "context.snapshot")] == [500, 500, 500]


async def test_a_summary_is_made_for_the_model_and_not_shown(connect: Connect) -> None:
    client = await connect(assistant(400, Overflow.SUMMARISE))
    events = await client.run(input_after_turns(40, "calculate 1+1"))
    (told,) = custom(events, "context.compacted")
    first, last = custom(events, "context.snapshot")
    assert told["strategy"] == "summarise"
    assert told["tokensAfter"] <= 400
    assert first["messages"][0]["role"] == "user"
    assert text(events) == "The result of calculate is 2."
    charged = sum(value["totalTokens"] - value["toolTokens"] for value in (first, last))
    assert events[-1]["usage"][0]["totalTokens"] > charged


@pytest.mark.parametrize("messages", [[], [{"id": "u", "role": "user", "content": "calculate 2+2"}]])
async def test_a_caller_asks_for_a_skill(connect: Connect, messages: list[Json]) -> None:
    client = await connect(assistant(skills=(TEA,)))
    asked = {"skill": {"name": "tea", "arguments": "calculate 2+2"}}
    assert text(await client.run(ask(messages=messages, forwardedProps=asked))) == "The result of calculate is 4."


@pytest.mark.parametrize("skills", [(TEA,), ()])
async def test_a_skill_that_is_not_there_is_an_error_that_says_what_is(
    connect: Connect, skills: tuple[Skill, ...]
) -> None:
    client = await connect(assistant(skills=skills))
    events = await client.run(ask(forwardedProps={"skill": {"name": "coffee"}}))
    known = "known are tea" if skills else "this server has no skills"
    assert types(events) == ["RUN_STARTED", "RUN_ERROR"]
    assert events[-1]["code"] == "VALIDATION_ERROR"
    assert events[-1]["message"] == f"forwardedProps.skill.name: there is no skill named 'coffee'; {known}."


async def test_the_model_reads_a_skill(connect: Connect) -> None:
    client = await connect(assistant(skills=(TEA,)))
    events = await client.run(ask(text='call load_skill {"name": "tea"}'))
    assert text(events) == "The result of load_skill is Boil water for the user's last message."


async def test_capabilities_name_the_skills(connect: Connect) -> None:
    client = await connect(assistant(skills=(TEA,)))
    told = (await client.command({"command": {"type": "capabilities"}}))["capabilities"]
    assert told["custom"]["skills"] == ["tea"]
    assert "load_skill" in [tool["name"] for tool in told["tools"]["items"]]
