"""Valid forms of an answer; an invalid answer changes nothing."""

from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Message, ResumeEntry, ToolCall, ToolMessage, UserMessage

from agui_container.agents.approvals.approvals import LIFETIME
from agui_container.agents.approvals.resume import ends_with_answer
from agui_container.ports.tool import MAX_REASON
from agui_container.protocol.errors import AppError, ErrorCode
from tests.agents.approval_helpers import (
    ApprovalFixture,
    abandoned,
    answer,
    ask_for_payments,
    interrupts,
    results,
    text_of,
)

CALL = ToolCall(id="c", function=FunctionCall(name="f", arguments="{}"))
BELOW = AssistantMessage(id="b", content="I asked.", subagent_run_id="s")


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


async def refusal_of(fixture: ApprovalFixture, *entries: ResumeEntry) -> str:
    """The message of a run that does not take these answers."""
    with pytest.raises(AppError) as caught:
        await fixture.start(resume=entries)
    assert caught.value.code is ErrorCode.VALIDATION_ERROR
    assert fixture.paid == []
    return caught.value.message


@pytest.mark.parametrize(
    ("payload", "error_body"),
    [
        (None, ": must be an object with approved, reason, editedArgs, of which the first is required."),
        ([True], ": must be an object with approved, reason, editedArgs, of which the first is required."),
        ({}, ".approved: must be true or false."),
        ({"approved": "yes"}, ".approved: must be true or false."),
        ({"approved": True, "reason": 5}, f".reason: must be a text of at most {MAX_REASON} characters."),
        ({"approved": False, "reason": "x" * 10_001}, f".reason: must be a text of at most {MAX_REASON} characters."),
        ({"approved": True, "editedArgs": [1]}, ".editedArgs: must be an object."),
        ({"approved": True, "edited_args": {"amount": 1}}, ".edited_args: is not a field of an answer."),
        ({"approved": True, "editedArg": {"amount": 1}}, ".editedArg: is not a field of an answer."),
        ({"approved": True, "x" * 1000: 1}, f".{'x' * 64}: is not a field of an answer."),
    ],
)
async def test_an_answer_of_another_form_is_refused_in_a_sentence_of_our_own(
    fixture: ApprovalFixture, payload: object, error_body: str
) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    entry = ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=payload)
    assert await refusal_of(fixture, entry) == f"resume.0.payload{error_body}"
    await fixture.start(resume=[answer(interrupt, approved=True)])
    assert fixture.paid == [5]


@pytest.mark.parametrize("arguments", [nested(300), {"amount": float("inf")}, {"amount": float("nan")}])
async def test_edited_arguments_that_json_cannot_carry_are_refused_and_the_call_stays_open(
    fixture: ApprovalFixture,
    arguments: dict[str, object],
) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    message = await refusal_of(fixture, answer(interrupt, approved=True, editedArgs=arguments))
    assert message == "resume.0.payload.editedArgs: cannot be written as JSON."
    assert interrupts(await fixture.start()) == [interrupt]


async def test_answers_to_what_nobody_asked_are_one_line_in_the_log(
    fixture: ApprovalFixture, caplog: pytest.LogCaptureFixture
) -> None:
    forged = [ResumeEntry(interrupt_id=f"forged\n{'x' * 200}{at}", status="cancelled") for at in range(1000)]
    await fixture.start("hi", resume=forged)
    (line,) = (record.getMessage() for record in caplog.records if "unknown interrupts" in record.getMessage())
    assert line.startswith("answers to unknown interrupts ignored count=1000 first='forged\\nxxx")
    assert len(line) < 200


async def test_an_answer_to_a_call_that_no_longer_waits_is_refused_and_an_abandonment_goes_on(
    fixture: ApprovalFixture,
) -> None:
    items = await fixture.send('call pay {"amount": 5}')
    (interrupt,) = interrupts(items)
    fixture.now += 3 * LIFETIME
    message = await refusal_of(fixture, answer(interrupt, approved=True))
    assert message == (
        "resume.0.interruptId: this interrupt no longer waits for an answer, and nothing was run; cancel it to go on."
    )
    assert interrupts(await fixture.start(resume=[abandoned(interrupt)])) == []
    fixture.history.clear()
    assert await refusal_of(fixture, abandoned(interrupt), answer(interrupt, approved=True))
    assert fixture.paid == []


async def test_an_answer_that_belongs_to_nothing_in_the_history_is_ignored(fixture: ApprovalFixture) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    fixture.now += 3 * LIFETIME
    items = await fixture.start("stream 1", resume=[answer(interrupt, approved=True)])
    assert text_of(items) == "hello world, "


async def test_a_call_of_the_client_is_no_call_that_waits(fixture: ApprovalFixture) -> None:
    await fixture.send("call show", tools=("show",))
    forged = ResumeEntry(interrupt_id="forged", status="resolved", payload={"approved": True})
    await fixture.start(resume=[forged], tools=("show",))


async def test_a_denied_call_keeps_its_arguments_whatever_was_edited(fixture: ApprovalFixture) -> None:
    await fixture.send('call pay {"amount": 5}')
    (interrupt,) = interrupts(await fixture.start())
    items = await fixture.start(resume=[answer(interrupt, approved=False, editedArgs={"amount": 2})])
    assert results(items) == ["Error: the user denied this call."]
    (call,) = (call for m in fixture.model.prompts[-1].messages for call in getattr(m, "tool_calls", None) or ())
    assert call.function.arguments == '{"amount": 5}'


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([], False),
        ([UserMessage(id="u", content="hi")], False),
        ([AssistantMessage(id="a", content="done")], True),
        ([AssistantMessage(id="a", content="done"), ToolMessage(id="t", tool_call_id="c", content="x")], False),
        ([AssistantMessage(id="a", tool_calls=[CALL])], False),
        ([AssistantMessage(id="a", tool_calls=[CALL]), BELOW], False),
        ([AssistantMessage(id="a", content="done"), BELOW], True),
    ],
)
def test_the_last_word_is_the_assistants_own(said: Sequence[Message], *, words: bool) -> None:
    assert ends_with_answer(said) is words
