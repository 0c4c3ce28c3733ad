"""What is particular to Pydantic AI: dependencies."""

from ag_ui.core import RunAgentInput, StateSnapshotEvent, ToolCallResultEvent

from app.agents.loader import load_agent
from app.ports import Item
from tests.contexts import collected, of_type, run_context, run_input


async def items(name: str, request: RunAgentInput) -> list[Item]:
    return await collected(load_agent(f"tests.frameworks.pydantic_agents:{name}").run(request, run_context()))


async def test_the_state_comes_in_and_goes_out() -> None:
    for visits in (4, 0):
        request = run_input("use visit").model_copy(update={"state": {"visits": visits}})
        (snapshot,) = of_type(await items("stateful", request), StateSnapshotEvent)
        assert snapshot.snapshot == {"visits": visits + 1}


async def test_each_run_begins_with_a_fresh_state() -> None:
    for _ in range(2):
        (snapshot,) = of_type(await items("stateful", run_input("use visit")), StateSnapshotEvent)
        assert snapshot.snapshot == {"visits": 1}


async def test_dependencies_are_made_of_the_context() -> None:
    (result,) = of_type(await items("agent", run_input("use whoami")), ToolCallResultEvent)
    assert result.content == "thread of None"
