"""Valid forms of an answer; an invalid answer changes nothing."""

from typing import Any

import pytest
from ag_ui.core import ResumeEntry

from agui_container.protocol.errors import AppError, ErrorCode
from tests.agents.approval_helpers import (
    ApprovalFixture,
    answer,
    ask_for_payments,
    interrupts,
    results,
)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


async def refusal_of(fixture: ApprovalFixture, *entries: ResumeEntry) -> str:
    with pytest.raises(AppError) as caught:
        await fixture.start(resume=entries)
    assert caught.value.code is ErrorCode.VALIDATION_ERROR
    assert fixture.paid == []
    return caught.value.message


@pytest.mark.parametrize(
    ("payload", "error_body"),
    [
        (None, ": Input should be an object"),
        ({}, ".approved: Field required"),
        ({"approved": "yes"}, ".approved: Input should be a valid boolean"),
        ({"approved": False, "reason": "x" * 10_001}, ".reason: String should have at most 10000 characters"),
        ({"approved": True, "editedArgs": [1]}, ".editedArgs: Input should be an object"),
        ({"approved": True, "edited_args": {"amount": 1}}, ".edited_args: Extra inputs are not permitted"),
    ],
)
async def test_an_answer_of_another_form_is_refused_and_the_field_is_named(
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


async def test_a_denied_call_keeps_its_arguments_whatever_was_edited(fixture: ApprovalFixture) -> None:
    await fixture.send('call pay {"amount": 5}')
    (interrupt,) = interrupts(await fixture.start())
    items = await fixture.start(resume=[answer(interrupt, approved=False, editedArgs={"amount": 2})])
    assert results(items) == ["Error: the user denied this call."]
    (call,) = (call for m in fixture.model.prompts[-1].messages for call in getattr(m, "tool_calls", None) or ())
    assert call.function.arguments == '{"amount": 5}'
