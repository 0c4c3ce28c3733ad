"""Questions of a crewAI server: the interrupts of ``ag-ui-crewai`` 1.0 in this server's form, and their answers."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import AssistantMessage, ResumeEntry, RunErrorEvent, ToolCall, ToolMessage

from agui_container.agents.gate.approval import RESPONSE_SCHEMA
from agui_container.testing import open_thread, run_agent, user_input
from tests.agents.upstream.servers import Item, Server, called, run_event, said

CALL = {"id": "call-1", "type": "function", "function": {"name": "charge", "arguments": '{"sides": 6}'}}


def crew(output: object = CALL, message: str = "Charge?") -> Server:
    """Return a server whose flow makes a call, and pauses behind a method that returns ``output``."""

    async def answer(request: dict[str, object]) -> AsyncIterator[Item]:
        messages = request["messages"]
        assert isinstance(messages, list)
        if request.get("resume") or messages[-1]["content"] != "charge":
            for event in said("done"):
                yield event
            return
        for event in called("charge", {"sides": 6}, "call-1"):
            yield event
        thread = request["threadId"]
        details = {"flowId": thread, "methodName": "ask", "output": output}
        question = {"id": thread, "reason": "crewai:human_feedback", "metadata": {"crewai": details}}
        outcome = {"type": "interrupt", "interrupts": [{**question, **({"message": message} if message else {})}]}
        yield run_event("RUN_FINISHED", request, outcome=outcome)

    return Server(answer)


def payloads(server: Server) -> list[tuple[str, object]]:
    resume = server.requests[-1]["resume"]
    assert isinstance(resume, list)
    return [(entry["status"], entry.get("payload")) for entry in resume]


@pytest.mark.parametrize(("message", "shown"), [("Charge?", "Charge?"), ("", 'Allow charge with {"sides": 6}?')])
async def test_a_method_that_returns_a_call_asks_for_its_approval(message: str, shown: str) -> None:
    async with open_thread(crew(CALL, message).app) as thread:
        await thread.send("charge")
        (interrupt,) = thread.interrupts
    assert (interrupt.reason, interrupt.tool_call_id, interrupt.message) == ("tool_call", "call-1", shown)
    assert interrupt.response_schema == RESPONSE_SCHEMA
    assert interrupt.metadata == {"toolName": "charge", "arguments": '{"sides": 6}'}


@pytest.mark.parametrize("approved", [True, False])
async def test_the_flow_gets_the_decision(*, approved: bool) -> None:
    server = crew()
    async with open_thread(server.app) as thread:
        await thread.send("charge")
        await thread.answer({"approved": approved, "reason": "the flow never sees it"})
        assert thread.text == "done"
    assert payloads(server) == [("resolved", {"approved": approved})]


@pytest.mark.parametrize("payload", [{"approved": "yes"}, {}, "yes", {"approved": True, "editedArgs": {"sides": 1}}])
async def test_an_answer_without_a_decision_never_reaches_the_flow(payload: object) -> None:
    server = crew()
    async with open_thread(server.app) as thread:
        await thread.send("charge")
        (*_, end) = await thread.answer(payload)
    assert isinstance(end, RunErrorEvent)
    assert end.code == "VALIDATION_ERROR"
    assert end.message.startswith("resume.0.payload")
    assert len(server.requests) == 1


@pytest.mark.parametrize("is_open", [True, False])
async def test_an_approval_that_only_the_flow_may_know_reaches_it_while_its_call_is_open(*, is_open: bool) -> None:
    server = crew()
    made = AssistantMessage(id="a", tool_calls=[ToolCall.model_validate(CALL)])
    result = ToolMessage(id="r", tool_call_id="call-1", content="charged 6")
    answer = ResumeEntry(interrupt_id="crewai:approval:call-1", status="resolved", payload={"approved": True})
    request = user_input("charge")
    messages = [*request.messages, made, *([] if is_open else [result])]
    (*_, end) = await run_agent(server.app, request.model_copy(update={"messages": messages, "resume": [answer]}))
    refused = None if is_open else "The thread does not wait for this answer."
    assert (end.message if isinstance(end, RunErrorEvent) else None) == refused
    assert len(server.requests) == (1 if is_open else 0)


@pytest.mark.parametrize("output", [None, "a text to review", {"id": "no call"}])
async def test_a_method_that_returns_something_else_gets_the_answer_as_it_is(output: object) -> None:
    server = crew(output)
    async with open_thread(server.app) as thread:
        await thread.send("charge")
        assert [(each.reason, each.message) for each in thread.interrupts] == [("crewai:human_feedback", "Charge?")]
        await thread.answer("shorter, please")
    assert payloads(server) == [("resolved", "shorter, please")]


@pytest.mark.parametrize(("output", "payload"), [(CALL, {"approved": False}), ("a text", "The user refused.")])
async def test_a_cancelled_question_is_a_refusal_and_not_the_first_outcome_of_the_flow(
    output: object, payload: object
) -> None:
    server = crew(output)
    async with open_thread(server.app) as thread:
        await thread.send("charge")
        await thread.decline()
    assert payloads(server) == [("resolved", payload)]


async def test_two_questions_of_a_thread_have_two_ids() -> None:
    async with open_thread(crew("a text").app) as thread:
        await thread.send("charge")
        first = thread.interrupts
        await thread.answer("fine")
        await thread.send("charge")
        assert len({each.id for each in (*first, *thread.interrupts)}) == 2
