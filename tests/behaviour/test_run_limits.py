"""Token limits of runs, also for stricter limits of callers."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, TokenUsage

from agui_container.ports import Item, RunContext
from tests.behaviour.client import Refused, outcome, text, types
from tests.behaviour.conftest import ConnectModel
from tests.behaviour.conversations import ClientThread
from tests.conftest import Connect
from tests.engine.doubles import Json, ask, forever

PROMPT = "Be brief and kind."
FIRST_CALL = 4 + 2 + 3
"""Tokens of the first model call for ``calculate 6*7``: the prompt, what was said, the call."""


async def test_an_assistant_that_has_used_its_tokens_makes_no_further_model_call(connect_model: ConnectModel) -> None:
    thread = await connect_model(system_prompt=PROMPT, run_tokens=FIRST_CALL)
    events = await thread.say("calculate 6*7")
    assert types(events)[-2:] == ["TOOL_CALL_RESULT", "RUN_ERROR"]
    assert outcome(events) == "RUN_LIMIT_EXCEEDED"
    assert events[-1]["message"] == f"The assistant stopped after {FIRST_CALL} tokens without finishing."
    assert events[-1]["metadata"]["retryable"] is False
    assert sum(entry["totalTokens"] for entry in events[-1]["usage"]) == FIRST_CALL
    assert len(thread.prompts()) == 1
    assert text(await thread.say("stream 1")) == "hello world, "


async def test_an_answer_that_is_there_is_not_taken_back(connect_model: ConnectModel) -> None:
    thread = await connect_model(system_prompt=PROMPT, run_tokens=FIRST_CALL + 1)
    events = await thread.say("calculate 6*7")
    assert (text(events), outcome(events)) == ("The result of calculate is 42.", "success")


@pytest.mark.parametrize("budget", [{"steps": 1}, {"tokens": 1}, {"steps": 9, "tokens": 1}])
async def test_a_caller_may_ask_for_less(connect_model: ConnectModel, budget: Json) -> None:
    thread = await connect_model(max_steps=3)
    events = await thread.say("calculate 6*7", forwardedProps={"budget": budget})
    assert outcome(events) == "RUN_LIMIT_EXCEEDED"
    assert len(thread.prompts()) == 1
    assert outcome(await thread.say("calculate 6*7")) == "success"


@pytest.mark.parametrize("settings", [{"max_steps": 1}, {"run_tokens": 1}])
async def test_a_caller_never_gets_more(connect_model: ConnectModel, settings: dict[str, int]) -> None:
    thread = await connect_model(**settings)
    events = await thread.say("calculate 6*7", forwardedProps={"budget": {"steps": 99, "tokens": 99_999}})
    assert outcome(events) == "RUN_LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"tokens": 0}, "forwardedProps.budget.tokens: Input should be greater than or equal to 1."),
        ({"hours": 5}, "forwardedProps.budget.hours: Extra inputs are not permitted."),
    ],
)
async def test_a_budget_with_a_bad_field_is_refused_by_its_name(
    thread: ClientThread, budget: object, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        await thread.say("stream 1", forwardedProps={"budget": budget})
    assert (refused.value.code, refused.value.message) == ("VALIDATION_ERROR", message)


@pytest.mark.parametrize(("operator", "caller"), [(60, 5), (5, 60)])
async def test_a_run_ends_after_the_fewer_seconds(connect: Connect, operator: float, caller: float) -> None:
    client = await connect(forever, run_timeout=operator)
    stream = await client.start(ask(forwardedProps={"budget": {"seconds": caller}}))
    await stream.until("RUN_STARTED")
    client.clock.advance(4.9)
    assert client.service.health.report()["status"] == "HealthyBusy"
    client.clock.advance(0.2)
    events = await stream.rest()
    assert outcome(events) == "RUN_TIMEOUT"
    assert events[-1]["message"] == "The run took longer than it may."


async def test_an_agent_knows_how_long_it_may_take(connect: Connect) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield f"{ctx.limits.seconds}"

    client = await connect(agent, run_timeout=60)
    assert text(await client.run(ask())) == "60.0"
    assert text(await client.run(ask(run="r2", forwardedProps={"budget": {"seconds": 1.5}}))) == "1.5"


@pytest.mark.parametrize(("tokens", "told"), [(0, None), (5_000, 5_000)])
async def test_the_capabilities_say_how_many_tokens_a_run_may_use(
    connect_model: ConnectModel, tokens: int, told: int | None
) -> None:
    thread = await connect_model(run_tokens=tokens)
    capabilities = await thread.client.command({"command": {"type": "capabilities"}})
    assert capabilities["capabilities"]["custom"].get("maxRunTokens") == told


async def use_tokens_without_end(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    while True:
        ctx.usage.append(TokenUsage(input_tokens=7, output_tokens=3))
        yield "more "


@pytest.mark.parametrize(
    ("limit", "forwarded"), [(25, {}), (99, {"budget": {"tokens": 25}}), (0, {"budget": {"tokens": 25}})]
)
async def test_an_agent_that_reports_too_many_tokens_is_ended(connect: Connect, limit: int, forwarded: Json) -> None:
    client = await connect(use_tokens_without_end, run_tokens=limit)
    events = await client.run(ask(forwardedProps=forwarded))
    assert (text(events), outcome(events)) == ("more more more ", "RUN_LIMIT_EXCEEDED")
    assert events[-1]["message"] == "The agent stopped after 25 tokens without finishing."
    assert events[-1]["usage"] == [{"inputTokens": 4 * 7, "outputTokens": 4 * 3}]


async def test_an_agent_that_finishes_with_its_last_call_has_finished(connect: Connect) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.usage.append(TokenUsage(total_tokens=99))
        yield "Done."

    client = await connect(agent, run_tokens=1)
    events = await client.run(ask())
    assert (text(events), outcome(events)) == ("Done.", "success")
