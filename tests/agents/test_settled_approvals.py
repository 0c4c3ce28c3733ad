"""Decided calls: later runs read their results, and no later run executes them again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from ag_ui.core import AssistantMessage, Interrupt, ResumeEntry, TextPart, UserMessage
from ag_ui.core import Tool as ToolSpec

from agui_container.agents.tool_calls.toolbox import DECLINED, NOT_SENDABLE
from agui_container.ports import (
    Permission,
    PolicyDecision,
    RunContext,
    Suspension,
    Tool,
    ToolCallDelta,
    ToolContent,
    ToolError,
    ToolSuspension,
)
from agui_container.protocol.conversation.stored_parts import NO_RESULT
from tests.agents.approval_helpers import ApprovalFixture, answer, ask_for_payments, interrupts, results, text_of
from tests.agents.doubles import DONE, ScriptedModel
from tests.contexts import run_context
from tests.engine.doubles import wait_for_event
from tests.requirements import requirement


@dataclass
class ToolBox:
    """A source of tools; None means that the source is unavailable. While it is ``stuck``, it does not answer."""

    found: Sequence[Tool] | None
    name: str = "box"
    stuck: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        if self.stuck:
            self.asked.set()
            await asyncio.Event().wait()
        if self.found is None:
            raise ToolError("the box is closed")
        return self.found

    async def aclose(self) -> None:
        raise NotImplementedError


@dataclass
class FixedTool:
    """A tool that returns or raises a given value."""

    answers: object
    called: list[object] = field(default_factory=list)
    spec: ToolSpec = field(default_factory=lambda: ToolSpec(name="odd", description="Odd.", parameters={}))

    async def call(self, arguments: object, ctx: RunContext) -> ToolContent:
        self.called.append(arguments)
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers  # type: ignore[return-value]


def fixture_with_tool(answers: object) -> tuple[ApprovalFixture, FixedTool]:
    """Return a fixture with a tool that needs an approval."""
    fixture, odd = ApprovalFixture(), FixedTool(answers)
    rule = PolicyDecision(Permission.ASK)
    fixture.assistant = replace(fixture.assistant, tools=(odd,), policy=lambda _: rule)
    return fixture, odd


# --- repeated answers -------------------------------------------------------------------------------------------------


async def test_a_client_that_sends_no_history_with_its_second_answer_gets_the_same(fixture: ApprovalFixture) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    await fixture.start(resume=[answer(interrupt, approved=True)])
    assert text_of(await fixture.start(resume=[answer(interrupt, approved=True)])) == "The result of pay is paid 5."


async def test_a_message_after_a_lost_answer_does_not_make_the_call_an_unanswered_one(fixture: ApprovalFixture) -> None:
    (interrupt,) = interrupts(await fixture.send('call pay {"amount": 5}'))
    await fixture.start(resume=[answer(interrupt, approved=True)])
    items = await fixture.start("what now")
    assert results(items) == ["paid 5"]
    assert fixture.tool_results() == [("paid 5", None)]


async def test_a_client_that_has_the_result_is_not_sent_it_again(fixture: ApprovalFixture) -> None:
    (interrupt,) = interrupts(await fixture.send('call pay {"amount": 5}'))
    fixture.keep(await fixture.start(resume=[answer(interrupt, approved=True)]))
    assert results(await fixture.start("what now")) == []
    assert results(await fixture.start("again", resume=[answer(interrupt, approved=True)])) == []
    assert fixture.tool_results() == [("paid 5", None)]


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


async def test_a_denied_call_is_not_run_by_a_second_thought(fixture: ApprovalFixture) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    await fixture.start(resume=[answer(interrupt, approved=False)])
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert (fixture.paid, results(items)) == ([], ["Error: the user denied this call."])


async def test_a_decision_is_remembered_for_as_long_as_an_approval_lives(fixture: ApprovalFixture) -> None:
    (interrupt,) = interrupts(await fixture.send('call pay {"amount": 5}'))
    fixture.now += 3599
    await fixture.start(resume=[answer(interrupt, approved=True)])
    fixture.now += 3599
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]
    fixture.now += 1
    other = replace(run_context(), thread_id="other")
    (another,) = interrupts(await fixture.start('call pay {"amount": 1}', ctx=other))
    await fixture.start(resume=[answer(another, approved=True)], ctx=other)
    await fixture.start("what now", resume=[answer(interrupt, approved=True)])
    assert fixture.paid == [5, 1]
    assert fixture.tool_results() == [("", NO_RESULT)]


async def test_of_two_answers_that_come_one_behind_the_other_the_second_finds_the_result(
    fixture: ApprovalFixture,
) -> None:
    first, second = interrupts(await fixture.send('call pay {"amount": 1}\ncall pay {"amount": 2}'))
    await fixture.start(resume=[answer(first, approved=True)])
    items = await fixture.start(resume=[answer(first, approved=True), answer(second, approved=True)])
    assert fixture.paid == [1, 2]
    assert fixture.tool_results() == [("paid 1", None), ("paid 2", None)]
    assert interrupts(items) == []


# --- invalid results --------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        ("bad \udc80 name", "bad \ufffd name"),
        ([TextPart(text="\ud83d")], [TextPart(text="\ufffd")]),
        (ToolError("bad \udc80 name"), "Error: bad \ufffd name"),
    ],
)
async def test_half_of_a_surrogate_pair_in_a_result_is_replaced(
    answers: object, result: object, caplog: pytest.LogCaptureFixture
) -> None:
    fixture, _ = fixture_with_tool(answers)
    (interrupt,) = interrupts(await fixture.send("call odd {}"))
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [result]
    assert "halves of surrogate pairs replaced in tool result tool=odd" in caplog.text


@pytest.mark.parametrize("content", ["x" * 1_000_000, "\0" * 1_000_000, "\u00e9" * 1_000_000, "x" * 7_900_000])
async def test_a_large_result_is_sent_as_it_is(content: str) -> None:
    fixture, _ = fixture_with_tool(content)
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [content]


async def test_a_question_that_cannot_be_sent_is_an_error_to_the_model() -> None:
    question = Interrupt(id="i", reason="r", message="x" * 9_000_000)
    fixture, _ = fixture_with_tool(ToolSuspension(Suspension([question], "part", ())))
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [NOT_SENDABLE]


async def test_a_conversation_that_is_too_large_to_be_kept_is_an_error_to_the_model() -> None:
    messages = [UserMessage(id="u", content="x" * 9_000_000)]
    fixture, _ = fixture_with_tool(ToolSuspension(Suspension([Interrupt(id="i", reason="r")], "part", messages)))
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [NOT_SENDABLE]


# --- missing tools ----------------------------------------------------------------------------------------------------


def fixture_with_source() -> tuple[ApprovalFixture, ToolBox, FixedTool]:
    """Return a fixture whose tool comes from a source and needs an approval."""
    fixture, odd = fixture_with_tool("done")
    box = ToolBox([odd])
    fixture.assistant = replace(fixture.assistant, tools=(), sources=(box,))
    return fixture, box, odd


@requirement("approval.down")
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


async def test_a_call_can_be_abandoned_while_the_source_of_its_tool_is_down() -> None:
    fixture, box, _ = fixture_with_source()
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    box.found = None
    items = await fixture.start(resume=[ResumeEntry(interrupt_id=interrupt.id, status="cancelled")])
    assert results(items) == [DECLINED]


async def test_a_tool_that_is_gone_for_good_is_an_error_to_the_model() -> None:
    fixture, box, _ = fixture_with_source()
    (interrupt,) = interrupts(await fixture.start("call odd {}"))
    box.found = []
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [
        "Error: there is no tool named 'odd'."
    ]


# --- calls of client tools --------------------------------------------------------------------------------------------


async def test_a_user_who_goes_on_without_a_client_call_is_answered(fixture: ApprovalFixture) -> None:
    (interrupt,) = interrupts(await fixture.send('call pay {"amount": 5}\ncall paint {}', tools=("paint",)))
    fixture.keep(await fixture.start(resume=[answer(interrupt, approved=True)], tools=("paint",)))
    fixture.history.append(UserMessage(id="u", content="never mind"))
    await fixture.start(tools=("paint",))
    assert fixture.tool_results() == [("paid 5", None), ("", NO_RESULT)]


# --- aborted runs -----------------------------------------------------------------------------------------------------


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
