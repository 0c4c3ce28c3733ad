"""The strictest limit of a run counts, and a model that reports no usage causes a warning."""

import logging

import pytest
from ag_ui.core import TokenUsage

from agui_container.agents.run_limits import LimitedAgent
from agui_container.assistant.assistant import Assistant
from agui_container.assistant.context_window.window import ContextBudget, Overflow
from agui_container.ports import RunLimits, TextDelta, UsageDelta
from agui_container.protocol.errors import AppError, ErrorCode
from tests.agents.doubles import ScriptedModel, answering, asks
from tests.contexts import collect_items, run_context, run_input

DONE = TextDelta("Done.")


async def test_a_model_that_reports_nothing_is_not_counted_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assistant = Assistant(ScriptedModel([asks("add"), asks("add"), [DONE]]), [answering("add")], max_tokens=1)
    with caplog.at_level(logging.WARNING):
        await collect_items(assistant.run(run_input("go"), run_context()))
    assert [record.message for record in caplog.records] == [
        "token limit has no effect because the model reports no usage run=run"
    ]


async def test_a_summary_that_takes_the_last_tokens_ends_the_run_before_the_answer() -> None:
    model = ScriptedModel([[TextDelta("They met."), UsageDelta(TokenUsage(total_tokens=9))], [DONE]])
    assistant = Assistant(model, budget=ContextBudget(400, Overflow.SUMMARISE), max_tokens=5)
    with pytest.raises(AppError) as caught:
        await collect_items(assistant.run(run_input(*["word " * 80] * 10), run_context()))
    assert (caught.value.code, len(model.prompts)) == (ErrorCode.RUN_LIMIT_EXCEEDED, 1)


async def test_an_agent_that_is_ended_is_closed() -> None:
    usage = UsageDelta(TokenUsage(total_tokens=9))
    model = ScriptedModel([[usage, DONE, usage, DONE, DONE]])
    with pytest.raises(AppError) as caught:
        await collect_items(LimitedAgent(Assistant(model), RunLimits(tokens=1)).run(run_input("go"), run_context()))
    assert (caught.value.code, model.closed) == (ErrorCode.RUN_LIMIT_EXCEEDED, 1)
