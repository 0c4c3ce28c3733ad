"""Repairs of frameworks, each still needed: without it the test of what it repairs fails.

A row that fails here says that its release has mended the fault, and that the repair can go.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from ag_ui_langgraph import LangGraphAgent

from agui_container.agents.frameworks import langgraph
from agui_container.agents.frameworks.translation import FrameworkError
from tests.agents.frameworks import langgraph_agents
from tests.agents.frameworks import test_langgraph as shown
from tests.agents.frameworks import test_langgraph_answers as answers

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
