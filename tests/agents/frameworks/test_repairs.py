"""Repairs of frameworks, each still needed: without it the test of what it repairs fails.

A row that fails here says that its release has mended the fault, and that the repair can go.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
from ag_ui.core import RunFinishedEvent, RunFinishedInterruptOutcome, ToolCallResultEvent
from ag_ui_langgraph import LangGraphAgent
from packaging.requirements import Requirement
from pydantic_ai.ui.ag_ui import AGUIAdapter

from agui_container.agents.frameworks import langgraph, langgraph_events, pydantic_ai
from agui_container.agents.frameworks.translation import FrameworkError
from tests.agents.conftest import Serve
from tests.agents.frameworks import langgraph_agents
from tests.agents.frameworks import test_langgraph as shown
from tests.agents.frameworks import test_langgraph_answers as answers
from tests.agents.frameworks import test_pydantic_ai as calls
from tests.agents.frameworks.table import PACKAGES, python_of
from tests.contexts import of_type

pytestmark = pytest.mark.packages

Test = Callable[[], Awaitable[None]]


@pytest.mark.parametrize(
    "test",
    [
        shown.test_a_call_that_a_model_streams_in_one_piece_has_its_arguments,
        shown.test_calls_that_a_model_makes_at_once_are_all_streamed,
        partial(shown.test_calls_that_a_node_returns_stand_before_their_results, shown.graph_with_calls()),
        shown.test_a_tools_message_has_one_id,
    ],
)
async def test_ag_ui_langgraph_0_0_47_loses_events(test: Test, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph, "LosslessGraph", lambda graph: graph)
    with pytest.warns(match="get_config_jsonschema"), pytest.raises(AssertionError):
        await test()


async def test_ag_ui_langgraph_0_0_47_gives_answers_to_other_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    package = LangGraphAgent(name="package", graph=langgraph_agents.both)
    monkeypatch.setattr(langgraph, "answers_by_interrupt", package._build_command_from_agui_resume)  # noqa: SLF001 - a documented hook
    with pytest.raises(FrameworkError, match="you must specify the interrupt id"):
        await answers.test_an_interrupt_without_an_answer_stays_open()


async def test_ag_ui_langgraph_0_0_47_puts_a_message_between_a_call_and_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(langgraph.PendingInterrupts, "is_deferred", lambda *_: False)
    with pytest.raises(AssertionError):
        await answers.test_a_user_message_beside_an_open_interrupt_is_kept_for_the_next_run()


async def test_ag_ui_langgraph_0_0_47_keeps_the_first_result_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph, "merge_state", lambda merge, *arguments: merge(*arguments))
    with pytest.raises(AssertionError, match="the red one"):
        await shown.test_a_late_result_of_a_client_replaces_what_stood_in_for_it()


async def test_ag_ui_langgraph_0_0_47_adds_a_state_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_events, "changed_keys", lambda sent, _: sent)
    with pytest.raises(AssertionError, match=r"\[1, 3, 7\]"):
        await shown.test_a_state_that_the_client_sends_back_is_not_added_to_itself()


async def test_ag_ui_langgraph_0_0_47_makes_a_text_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph, "results_of_parts", lambda _: {})
    with pytest.raises(AssertionError, match="type='text'"):
        await shown.test_a_result_of_parts_reaches_the_graph_as_blocks_and_the_client_as_it_was()


async def test_ag_ui_langgraph_0_0_47_fails_on_fields_that_are_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph, "check_form", lambda _: None)
    with pytest.raises(FrameworkError, match="list indices"):
        await answers.test_fields_that_must_be_objects_are_refused_if_they_are_not("state", "state")


async def test_pydantic_ai_2_68_drops_a_call_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydantic_ai, "with_answers", lambda input, _: input)
    request = calls.waiting("a", "b").model_copy(update={"resume": [calls.entry("a")]})
    with pytest.warns(match=r"unresolved tool call\(s\) \['roll'\], which were stripped"):
        done = await calls.items("asking", request)
    assert [event.tool_call_id for event in of_type(done, ToolCallResultEvent)] == ["a"]
    assert isinstance(done[-1], RunFinishedEvent)
    assert not isinstance(done[-1].outcome, RunFinishedInterruptOutcome)


async def test_pydantic_ai_2_68_gives_the_tools_of_a_client_no_retries(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pydantic_ai, "RetryingAdapter", AGUIAdapter)
    with pytest.raises(AssertionError, match="AGENT_ERROR"):
        await calls.test_a_model_that_cuts_the_arguments_of_a_call_off_is_asked_again(serve, "pick")


def test_agent_framework_ag_ui_1_7_demands_an_older_ag_ui_protocol() -> None:
    packages = Path(python_of("microsoft")).parents[1] / PACKAGES
    (package,) = metadata.distributions(name="agent-framework-ag-ui", path=[str(packages)])
    (demand,) = [each for each in map(Requirement, package.requires or ()) if each.name == "ag-ui-protocol"]
    assert not demand.specifier.contains(metadata.version("ag-ui-protocol"))
