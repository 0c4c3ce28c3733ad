"""Features of Pydantic AI: dependencies, states, and answers that are read from the messages."""

from collections.abc import Sequence

import pytest
from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    ResumeEntry,
    RunAgentInput,
    RunFinishedEvent,
    StateSnapshotEvent,
    ToolCall,
    ToolCallResultEvent,
    ToolMessage,
    UserMessage,
)

from agui_container.agents.loader import load_agent
from agui_container.ports import Item
from agui_container.protocol.errors import AppError, ErrorCode
from tests.agents.conftest import Serve
from tests.agents.frameworks import pydantic_ai_agents
from tests.agents.turns import EFFECTS
from tests.contexts import client_tool, collect_items, of_type, run_context, run_input

pytestmark = pytest.mark.packages

YES = {"approved": True}


async def items(name: str, request: RunAgentInput) -> list[Item]:
    return await collect_items(
        load_agent(f"tests.agents.frameworks.pydantic_ai_agents:{name}").run(request, run_context())
    )


async def test_the_state_comes_in_and_goes_out() -> None:
    for visits in (4, 0):
        request = run_input("use visit").model_copy(update={"state": {"visits": visits}})
        (snapshot,) = of_type(await items("stateful", request), StateSnapshotEvent)
        assert snapshot.snapshot == {"visits": visits + 1}


async def test_dependencies_are_made_of_the_context() -> None:
    (result,) = of_type(await items("agent", run_input("use whoami")), ToolCallResultEvent)
    assert result.content == "thread of None"


async def test_a_state_that_the_agent_cannot_take_is_refused() -> None:
    request = run_input("use visit").model_copy(update={"state": {"visits": "many"}})
    with pytest.raises(AppError, match=r"^state\.visits: Input should be a valid integer") as caught:
        await items("stateful", request)
    assert caught.value.code is ErrorCode.VALIDATION_ERROR


@pytest.mark.parametrize("tool", ["look", "pick"])
async def test_a_model_that_cuts_the_arguments_of_a_call_off_is_asked_again(serve: Serve, tool: str) -> None:
    client = await serve(pydantic_ai_agents.equipped)
    await client.run(run_input(f'call {tool} {{"amount": ', tools=[client_tool("pick")]))
    assert (client.outcome, EFFECTS) == ("success", [])
    assert "EOF while parsing" in client.text


def entry(call: str, payload: object = YES, status: str = "resolved") -> ResumeEntry:
    return ResumeEntry.model_validate({"interruptId": f"int-{call}", "status": status, "payload": payload})


def waiting(*calls: str, then: Sequence[ToolMessage | UserMessage] = ()) -> RunAgentInput:
    made = [ToolCall(id=call, function=FunctionCall(name="roll", arguments='{"sides": 6}')) for call in calls]
    return run_input("use roll", AssistantMessage(id="asks", tool_calls=made), *then)


async def results_by_call(request: RunAgentInput, *entries: ResumeEntry) -> dict[str, object]:
    done = await items("asking", request.model_copy(update={"resume": list(entries)}))
    assert isinstance(done[-1], RunFinishedEvent)
    return {event.tool_call_id: event.content for event in of_type(done, ToolCallResultEvent)}


async def test_every_answer_goes_to_the_call_that_it_names() -> None:
    results = await results_by_call(waiting("a", "b"), entry("b", {"approved": False}), entry("a"))
    assert results == {"a": "rolled 6", "b": "The tool call was denied."}


async def test_an_answer_to_what_nobody_asked_is_left_out() -> None:
    assert await results_by_call(waiting("a"), entry("a"), entry("other"), entry("other")) == {"a": "rolled 6"}
    done = waiting("a", then=[ToolMessage(id="r", tool_call_id="a", content="rolled 6")])
    assert await results_by_call(done, entry("a")) == {}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry("a")], "resume: the thread waits for more answers and results than were sent."),
        ([entry("other")], "resume: the thread waits for more answers and results than were sent."),
        ([entry("a"), entry("b"), entry("a")], "resume.2.interruptId: this interrupt is answered twice."),
        ([entry("a"), entry("b", "yes")], "resume: payload.approved must be true or false."),
        ([entry("a"), entry("b", {"approved": 1})], "resume: payload.approved must be true or false."),
    ],
)
async def test_answers_that_leave_a_call_open_are_refused_before_anything_runs(
    entries: Sequence[ResumeEntry], message: str
) -> None:
    with pytest.raises(AppError) as caught:
        await results_by_call(waiting("a", "b"), *entries)
    assert (caught.value.code, caught.value.message) == (ErrorCode.VALIDATION_ERROR, message)
