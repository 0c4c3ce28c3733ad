"""Approvals of LangChain's middleware: one interrupt for each call, and one list of decisions for all answers."""

from typing import Any

import pytest
from ag_ui.core import Interrupt, ResumeEntry
from langchain_core.messages import AIMessage, HumanMessage

from agui_container.agents.frameworks.langchain_approvals import join_answers, split_requests
from agui_container.protocol.errors import AppError

pytestmark = pytest.mark.packages

REQUESTS = [{"name": "pay", "args": {"amount": 1}}, {"name": "pay", "args": {"amount": 2}}]
ASKED = Interrupt(id="q", reason="langgraph:interrupt", metadata={"langgraph": {"raw": {"action_requests": REQUESTS}}})
OTHER = Interrupt(
    id="colour", reason="langgraph:interrupt", message="Which?", metadata={"langgraph": {"raw": "Which?"}}
)
CALLS = [{"name": "pay", "args": {"amount": amount}, "id": f"call-{amount}"} for amount in (2, 1)]
MESSAGES = [HumanMessage("pay"), AIMessage("", tool_calls=CALLS)]


def answer(id_: str, payload: object, status: Any = "resolved") -> ResumeEntry:  # noqa: ANN401 - a literal of AG-UI
    return ResumeEntry(interrupt_id=id_, status=status, payload=payload)


def test_each_call_is_an_interrupt_of_its_own_beside_other_interrupts() -> None:
    split = split_requests([ASKED, OTHER], MESSAGES)
    assert [(each.id, each.tool_call_id) for each in split] == [("q:0", "call-1"), ("q:1", "call-2"), ("colour", None)]
    assert [each.message for each in split] == [
        'Allow pay with {"amount": 1}?',
        'Allow pay with {"amount": 2}?',
        "Which?",
    ]


@pytest.mark.parametrize(
    ("first", "decision"),
    [
        (answer("q:0", {"approved": True}), {"type": "approve"}),
        (answer("q:0", {"approved": False}), {"type": "reject"}),
        (answer("q:0", {"approved": False, "reason": "dear"}), {"type": "reject", "message": "dear"}),
        (answer("q:0", None, "cancelled"), {"type": "reject"}),
        (
            answer("q:0", {"approved": True, "editedArgs": {"amount": 9}}),
            {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 9}}},
        ),
    ],
)
def test_the_answers_are_one_list_of_decisions(first: ResumeEntry, decision: object) -> None:
    joined = join_answers([answer("colour", "red"), answer("q:1", {"approved": True}), first], [ASKED, OTHER])
    assert [(each.interrupt_id, each.payload) for each in joined] == [
        ("q", {"decisions": [decision, {"type": "approve"}]}),
        ("colour", "red"),
    ]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([answer("q:0", {"approved": True})], "resume: every call of the turn needs its answer in one run."),
        (
            [answer("q:0", {"approved": 1}), answer("q:1", {"approved": True})],
            "resume: payload.approved must be true or false.",
        ),
    ],
)
def test_answers_that_leave_a_call_open_are_refused(entries: list[ResumeEntry], message: str) -> None:
    with pytest.raises(AppError) as caught:
        join_answers(entries, [ASKED])
    assert caught.value.message == message


def test_an_interrupt_that_gets_no_answer_stays_open() -> None:
    assert join_answers([answer("colour", "red")], [ASKED, OTHER]) == [answer("colour", "red")]
