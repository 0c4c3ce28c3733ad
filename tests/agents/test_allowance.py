"""What a run may use is the least that anybody allows, and a model that reports nothing is not counted in silence."""

import logging

import pytest
from ag_ui.core import TokenUsage

from app.agents.allowance import Limited
from app.agents.assistant import Assistant
from app.agents.context.budget import Budget, Overflow
from app.core.errors import AppError, Code
from app.core.usage import tokens_of
from app.ports import Allowance, TextDelta, UsageDelta
from tests.agents.doubles import ScriptedModel, answering, asks
from tests.contexts import collected, run_context, run_input
from tests.requirements import requirement

DONE = TextDelta("Done.")


@pytest.mark.parametrize(
    ("one", "other", "least"),
    [
        (Allowance(), Allowance(), Allowance()),
        (Allowance(steps=3), Allowance(tokens=5), Allowance(3, 5)),
        (Allowance(3, 9), Allowance(4, 8), Allowance(3, 8)),
        (Allowance(context_tokens=9), Allowance(), Allowance(context_tokens=9)),
        (Allowance(context_tokens=9), Allowance(context_tokens=8), Allowance(context_tokens=8)),
    ],
)
def test_the_smaller_limit_holds(one: Allowance, other: Allowance, least: Allowance) -> None:
    assert one.within(other) == other.within(one) == least


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ([], 0),
        ([TokenUsage(total_tokens=5, input_tokens=1)], 5),
        ([TokenUsage(input_tokens=2, output_tokens=3), TokenUsage(output_tokens=1)], 6),
        ([TokenUsage()], 0),
    ],
)
def test_tokens_are_totals_or_else_input_and_output(usage: list[TokenUsage], tokens: int) -> None:
    assert tokens_of(usage) == tokens


@requirement("budget.silent")
async def test_a_model_that_reports_nothing_is_not_counted_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assistant = Assistant(ScriptedModel([asks("add"), asks("add"), [DONE]]), [answering("add")], max_tokens=1)
    with caplog.at_level(logging.WARNING):
        await collected(assistant.run(run_input("go"), run_context()))
    assert [record.message for record in caplog.records] == [
        "the model reports no usage: the limit of tokens does not hold"
    ]


async def test_a_summary_that_takes_the_last_tokens_ends_the_run_before_the_answer() -> None:
    model = ScriptedModel([[TextDelta("They met."), UsageDelta(TokenUsage(total_tokens=9))], [DONE]])
    assistant = Assistant(model, budget=Budget(400, Overflow.SUMMARISE), max_tokens=5)
    with pytest.raises(AppError) as caught:
        await collected(assistant.run(run_input(*["word " * 80] * 10), run_context()))
    assert (caught.value.code, len(model.prompts)) == (Code.RUN_LIMIT_EXCEEDED, 1)


async def test_without_a_limit_an_agents_stream_is_its_own() -> None:
    inner = Assistant(ScriptedModel([[DONE]]))
    stream = Limited(inner, Allowance()).run(run_input("go"), run_context())
    assert getattr(stream, "__qualname__", "") == "Assistant.run"
    assert len(await collected(stream)) == 4


async def test_an_agent_that_is_ended_is_closed() -> None:
    usage = UsageDelta(TokenUsage(total_tokens=9))
    model = ScriptedModel([[usage, DONE, usage, DONE, DONE]])
    with pytest.raises(AppError) as caught:
        await collected(Limited(Assistant(model), Allowance(tokens=1)).run(run_input("go"), run_context()))
    assert (caught.value.code, model.closed) == (Code.RUN_LIMIT_EXCEEDED, 1)
