"""Decided calls: later runs read their results, and no later run executes them again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pytest
from ag_ui.core import AssistantMessage, ResumeEntry, TextPart
from ag_ui.core import Tool as ToolSpec

from agui_container.agents.gate.toolbox import DECLINED, NOT_SENDABLE
from agui_container.ports import Permission, PolicyDecision, RunContext, Tool, ToolCallDelta, ToolContent, ToolError
from tests.agents.approval_helpers import ApprovalFixture, answer, ask_for_payments, interrupts, results, text_of
from tests.agents.doubles import DONE, ScriptedModel, ToolBox
from tests.engine.doubles import wait_for_event


@dataclass
class FixedTool:
    answers: object
    called: list[object] = field(default_factory=list)
    spec: ToolSpec = field(default_factory=lambda: ToolSpec(name="odd", description="Odd.", parameters={}))

    async def call(self, arguments: object, ctx: RunContext) -> ToolContent:
        self.called.append(arguments)
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers  # type: ignore[return-value]


def fixture_with_tool(answers: object) -> tuple[ApprovalFixture, FixedTool]:
    fixture, odd = ApprovalFixture(), FixedTool(answers)
    rule = PolicyDecision(Permission.ASK)
    fixture.assistant = replace(fixture.assistant, tools=(odd,), policy=lambda _: rule)
    return fixture, odd


@pytest.mark.parametrize("payload", [{"approved": False}, {"approved": True, "editedArgs": {"amount": 9}}, None])
async def test_an_answer_that_contradicts_what_was_decided_changes_nothing(
    fixture: ApprovalFixture, payload: dict[str, object] | None, caplog: pytest.LogCaptureFixture
) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    await fixture.start(resume=[answer(interrupt, approved=True)])
    status = "resolved" if payload else "cancelled"
    items = await fixture.start(resume=[ResumeEntry(interrupt_id=interrupt.id, status=status, payload=payload)])
    assert (fixture.paid, results(items)) == ([5], ["paid 5"])
    assert "answer ignored, call already decided" in caplog.text


@pytest.mark.parametrize(
    "answers",
    [
        "x" * 9_000_000,
        5,
        [
            TextPart.model_construct(text=None)  # type: ignore[arg-type]
        ],
        ToolError("x" * 9_000_000),
    ],
    ids=["9 MB", "number", "broken part", "error"],
)
async def test_a_result_that_cannot_be_sent_is_an_error_to_the_model_and_the_thread_goes_on(
    answers: object, caplog: pytest.LogCaptureFixture
) -> None:
    fixture, odd = fixture_with_tool(answers)
    (interrupt,) = interrupts(await fixture.send("call odd {}"))
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert results(items) == [NOT_SENDABLE]
    assert text_of(items).startswith("The call of odd failed: ")
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [NOT_SENDABLE]
    assert len(odd.called) == 1
    assert "tool result cannot be encoded tool=odd" in caplog.text


@pytest.mark.parametrize("content", ["x" * 1_000_000, "\0" * 1_000_000, "\u00e9" * 1_000_000, "x" * 7_900_000])
async def test_a_large_result_is_sent_as_it_is(content: str) -> None:
    fixture, _ = fixture_with_tool(content)
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [content]


def fixture_with_source() -> tuple[ApprovalFixture, ToolBox, FixedTool]:
    fixture, odd = fixture_with_tool("done")
    box = ToolBox([odd])
    fixture.assistant = replace(fixture.assistant, tools=(), sources=(box,))
    return fixture, box, odd


async def test_an_approval_is_not_used_up_while_the_source_of_its_tool_is_down() -> None:
    fixture, box, odd = fixture_with_source()
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    box.found = None
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert [getattr(item, "name", None) for item in items] == ["tools.unavailable", None]
    assert interrupts(items) == [interrupt]
    box.found = [odd]
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["done"]
    assert len(odd.called) == 1


@pytest.mark.parametrize(
    ("found", "status", "result"),
    [(None, "cancelled", DECLINED), ([], "resolved", "Error: there is no tool named 'odd'.")],
    ids=["abandoned while the source is down", "gone for good"],
)
async def test_a_call_whose_tool_is_not_there_ends_with_a_result(
    found: Sequence[Tool] | None, status: Literal["cancelled", "resolved"], result: str
) -> None:
    fixture, box, _ = fixture_with_source()
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    box.found = found
    entry = ResumeEntry(interrupt_id=interrupt.id, status=status, payload={"approved": True})
    assert results(await fixture.start(resume=[entry])) == [result]


async def test_a_run_that_is_cancelled_before_the_tool_begins_leaves_the_approval_open() -> None:
    fixture, box, odd = fixture_with_source()
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    box.stuck = True
    run = asyncio.create_task(fixture.start(resume=[answer(interrupt, approved=True)]))
    await wait_for_event(box.asked)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    box.stuck = False
    assert interrupts(await fixture.start()) == [interrupt]
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["done"]
    assert len(odd.called) == 1


async def test_an_approved_call_keeps_its_opaque_value_also_when_its_client_does_not(fixture: ApprovalFixture) -> None:
    model = ScriptedModel([[ToolCallDelta(0, '{"amount": 5}', "pay", "sealed")], DONE, DONE])
    fixture.assistant = replace(fixture.assistant, model=model)
    (asked,) = interrupts(await fixture.send("pay"))
    await fixture.start(resume=[answer(asked, approved=True)])
    fixture.history = fixture.history[:1]
    await fixture.start(resume=[answer(asked, approved=True)])
    for prompt in model.prompts[1:]:
        (call,) = [call for m in prompt.messages if isinstance(m, AssistantMessage) for call in m.tool_calls or ()]
        assert call.encrypted_value == "sealed"
