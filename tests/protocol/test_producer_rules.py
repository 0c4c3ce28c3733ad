"""Rules that no client checks: results answer known calls, interrupts have unique ids, open calls are known."""

import pytest
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    FunctionCall,
    Interrupt,
    MessagesSnapshotEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TextMessageStartEvent,
    ToolCall,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.validator import ProducerRules


def started(key: str) -> BaseEvent:
    return ToolCallStartEvent(tool_call_id=key, tool_call_name="tool")


def result(key: str) -> BaseEvent:
    return ToolCallResultEvent(message_id=f"result-{key}", tool_call_id=key, content="ok")


def asking(*keys: str) -> AssistantMessage:
    calls = [ToolCall(id=key, function=FunctionCall(name="tool", arguments="{}")) for key in keys]
    return AssistantMessage(id="a", tool_calls=calls)


def finish_event(*interrupts: str) -> BaseEvent:
    named = [Interrupt(id=key, reason="r") for key in interrupts]
    outcome = RunFinishedInterruptOutcome.model_construct(interrupts=named)
    return RunFinishedEvent(thread_id="t", run_id="r", outcome=None).model_copy(update={"outcome": outcome})


def after(*events: BaseEvent) -> ProducerRules:
    duties = ProducerRules([])
    for each in events:
        duties.check(each)
        duties.feed(each)
    return duties


def test_a_result_answers_a_call_of_this_run() -> None:
    assert after(started("c"), result("c")).open_calls() == []


def test_a_result_for_an_unknown_call_is_illegal() -> None:
    with pytest.raises(IllegalEvent, match="'c'"):
        after(started("other"), result("c"))


def test_a_result_may_answer_a_call_of_the_history() -> None:
    duties = ProducerRules([asking("c")])
    duties.check(result("c"))
    duties.feed(result("c"))
    assert duties.open_calls() == []


def test_a_result_may_answer_a_call_of_a_snapshot() -> None:
    assert after(MessagesSnapshotEvent(messages=[asking("c")]), result("c")).open_calls() == []


def test_a_second_result_for_one_call_is_allowed() -> None:
    assert after(started("c"), result("c"), result("c")).open_calls() == []


def test_unanswered_calls_are_pending_in_the_order_they_were_made() -> None:
    duties = after(started("b"), started("a"), ToolCallEndEvent(tool_call_id="b"), started("c"), result("a"))
    assert duties.open_calls() == ["b", "c"]


def test_calls_of_the_history_are_not_this_runs_to_leave_pending() -> None:
    assert ProducerRules([asking("c")]).open_calls() == []
    assert after(MessagesSnapshotEvent(messages=[asking("c")])).open_calls() == []


def test_a_call_that_is_made_again_is_pending_again() -> None:
    assert after(started("c"), result("c"), started("c")).open_calls() == ["c"]


def test_an_interrupt_outcome_names_each_interrupt_once() -> None:
    after(finish_event("i", "j"))
    with pytest.raises(IllegalEvent, match="share one id"):
        after(finish_event("i", "i"))
    with pytest.raises(IllegalEvent, match="without an interrupt"):
        after(finish_event())


@pytest.mark.parametrize("outcome", [None, RunFinishedSuccessOutcome(), RunFinishedCancelledOutcome()])
def test_other_outcomes_owe_nothing(outcome: RunFinishedSuccessOutcome | RunFinishedCancelledOutcome | None) -> None:
    after(TextMessageStartEvent(message_id="m"), RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome))
