"""Tools behind a policy: calls that wait for an answer, and every answer there can be."""

import asyncio

import pytest
from ag_ui.core import ToolCallResultEvent

from agui_container.agent_factory import read_policy
from agui_container.agents.gate.approval import MAX_SHOWN_ARGUMENTS
from agui_container.assistant.assistant import Assistant
from agui_container.assistant_factory import build_assistant
from agui_container.models.offline import OfflineModel
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import Settings
from tests.agents.approval_helpers import (
    ApprovalFixture,
    abandoned,
    answer,
    ask_for_payments,
    interrupts,
    results,
)
from tests.contexts import of_type
from tests.engine.doubles import eventually, wait_for_event


async def test_the_message_of_an_interrupt_shows_the_beginning_of_long_arguments() -> None:
    arguments = f'{{"amount": 5, "note": "{"x" * 1_000_000}"}}'
    (interrupt,) = interrupts(await ApprovalFixture().start(f"call pay {arguments}"))
    assert interrupt.message == f"Allow pay with {arguments[:MAX_SHOWN_ARGUMENTS]}…?"
    assert interrupt.metadata is not None
    assert interrupt.metadata["arguments"] == arguments


@pytest.mark.parametrize(
    "payload",
    [
        {"approved": True},
        {"approved": True, "editedArgs": {"amount": 2}},
        {"approved": False, "reason": "too much"},
        {"approved": False},
    ],
)
async def test_the_result_of_a_call_has_the_decision_on_it(payload: dict[str, object]) -> None:
    fixture = ApprovalFixture()
    (interrupt,) = await ask_for_payments(fixture, 5)
    items = await fixture.start(resume=[answer(interrupt, **payload)])
    (result,) = of_type(items, ToolCallResultEvent)
    assert result.metadata is not None
    assert result.metadata["decision"] == payload


async def test_an_expired_approval_can_only_be_abandoned(fixture: ApprovalFixture) -> None:
    (interrupt,) = await ask_for_payments(fixture, 5)
    fixture.now += 3600
    with pytest.raises(AppError, match=r"^resume\.0: this interrupt has expired") as caught:
        await fixture.start(resume=[answer(interrupt, approved=True)])
    assert caught.value.code is ErrorCode.VALIDATION_ERROR
    await fixture.start(resume=[abandoned(interrupt)])
    assert fixture.paid == []


@pytest.mark.parametrize("order", [("look", "pay"), ("pay", "look")], ids=["first", "second"])
async def test_a_result_comes_once_its_call_and_those_before_it_have_ended(
    fixture: ApprovalFixture, order: tuple[str, str]
) -> None:
    fixture.props = {"approvals": {"ask": "all"}}
    arguments = {"look": "{}", "pay": '{"amount": 5}'}
    asked = interrupts(await fixture.send("\n".join(f"call {name} {arguments[name]}" for name in order)))
    fixture.stuck = True
    run = asyncio.create_task(fixture.start(resume=[answer(interrupt, approved=True) for interrupt in asked]))
    await wait_for_event(fixture.started)
    if order[0] == "look":
        await eventually(lambda: results(fixture.items) == ["seen"])
    assert "paid 5" not in results(fixture.items)
    fixture.may_pay.set()
    assert results(await run) == ["seen" if name == "look" else "paid 5" for name in order]
    assert fixture.paid == [5]


async def test_arguments_that_are_no_object_are_not_worth_asking_about() -> None:
    items = await ApprovalFixture().start("call pay [5]")
    assert interrupts(items) == []
    assert results(items) == ["Error: the arguments are not a JSON object."]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("nosuch {}", "Error: there is no tool named 'nosuch'."),
        ("wipe {}", "Error: this tool is not allowed: never"),
        ("pay {no", "Error: the arguments are not valid JSON."),
        ("look {}", "seen"),
    ],
)
async def test_a_run_that_asks_for_all_calls_asks_also_for_one_that_then_fails(
    fixture: ApprovalFixture, call: str, expected: str
) -> None:
    fixture.props = {"approvals": {"ask": "all"}}
    items = await fixture.send(f"call {call}")
    (interrupt,) = interrupts(items)
    assert (results(items), fixture.paid) == ([], [])
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [expected]


async def test_capabilities_tell_of_approvals_only_where_there_are_some() -> None:
    assert Assistant(OfflineModel()).capabilities().human_in_the_loop is None
    shown = ApprovalFixture().assistant.capabilities().human_in_the_loop
    assert shown is not None
    assert shown.approve_with_edits is True


def test_capabilities_tell_which_tools_are_asked_for_or_never_run() -> None:
    described = ApprovalFixture().assistant.capabilities().tools
    assert described is not None
    assert {tool.name: tool.metadata for tool in described.items or () if tool.metadata} == {
        "pay": {"policy": "ask", "category": "physical", "reason": "it costs money"},
        "wipe": {"policy": "deny", "reason": "never"},
    }


@pytest.mark.parametrize(("policy", "expected"), [("ask", True), ("deny", False)])
def test_capabilities_tell_of_approvals_of_tools_that_only_a_source_knows(policy: str, expected: bool) -> None:  # noqa: FBT001
    settings = Settings(
        mcp_servers='[{"name": "shop", "command": "true"}]',
        tool_policy=f'[{{"tool_pattern": "shop_*", "policy": "{policy}"}}]',
    )
    assistant = build_assistant(settings, read_policy(settings), (), (), [])
    assert (assistant.capabilities().human_in_the_loop is not None) is expected
