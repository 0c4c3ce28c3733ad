"""Outcome of goals from the assistant's events. Other events with the same names do no harm."""

import pytest
from ag_ui.core import CustomEvent

from agui_container.engine.outcome import GoalStatusTracker
from tests.requirements import requirement


@requirement("goal.foreign")
@pytest.mark.parametrize(
    "value", [None, 1, "goals", [], {}, {"goals": None}, {"goals": ["a"]}, {"goals": [{"type": {}}]}]
)
@pytest.mark.parametrize("name", ["goals.declared", "goal.achieved", "goal.failed"])
def test_events_that_are_not_goals_are_ignored(name: str, value: object) -> None:
    watch = GoalStatusTracker()
    watch.feed(CustomEvent(name=name, value=value))
    watch.feed(CustomEvent(name=name, value={"type": value}))
    assert watch.has_failed is (name == "goal.failed" and isinstance(value, str))


def test_a_goal_that_is_left_pending_has_failed() -> None:
    watch = GoalStatusTracker()
    watch.feed(CustomEvent(name="goals.declared", value={"goals": [{"type": "note", "status": "pending"}]}))
    assert watch.has_failed
    watch.feed(CustomEvent(name="goal.achieved", value={"type": "note"}))
    assert not watch.has_failed
