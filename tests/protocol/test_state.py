"""The shared state: it begins with the input's, events change it, and nobody else does."""

from typing import Any

import pytest
from ag_ui.core import StateDeltaEvent

from agui_container.protocol.conversation.json_patch import PatchError
from agui_container.protocol.conversation.state import SharedState


def delta(*operations: dict[str, Any]) -> StateDeltaEvent:
    return StateDeltaEvent.model_validate({"delta": list(operations)})


ADD = delta({"op": "add", "path": "/items/-", "value": 2})


def test_it_begins_with_what_it_is_given() -> None:
    assert SharedState({"items": [1]}).value() == {"items": [1]}
    assert SharedState([1]).value() == [1]


def test_no_state_is_the_empty_object() -> None:
    state = SharedState(None)
    state.patch(delta({"op": "add", "path": "/a", "value": 1}))
    assert state.value() == {"a": 1}


def test_deltas_change_it_and_snapshots_replace_it() -> None:
    state = SharedState({"items": [1]})
    state.patch(ADD)
    assert state.value() == {"items": [1, 2]}
    state.replace({"items": []})
    state.patch(ADD)
    assert state.value() == {"items": [2]}


def test_the_state_is_copied_in_and_out() -> None:
    given: dict[str, Any] = {"items": [1]}
    state = SharedState(given)
    given["items"].append(9)
    taken = state.value()
    assert isinstance(taken, dict)
    taken["items"].append(8)
    assert state.value() == {"items": [1]}


def test_a_delta_that_does_not_apply_changes_nothing() -> None:
    state = SharedState({"items": [1]})
    wrong = delta({"op": "add", "path": "/items/-", "value": 2}, {"op": "remove", "path": "/none"})
    with pytest.raises(PatchError):
        state.check(wrong)
    with pytest.raises(PatchError):
        state.patch(wrong)
    assert state.value() == {"items": [1]}


def test_a_check_changes_nothing() -> None:
    state = SharedState({"items": [1]})
    state.check(ADD)
    assert state.value() == {"items": [1]}


def test_an_integer_that_no_double_holds_is_null_to_whoever_reads_the_state() -> None:
    state = SharedState({"count": 10**5_000})
    assert state.value() == {"count": None}
    state.patch(delta({"op": "add", "path": "/more", "value": 10**400}))
    assert state.value() == {"count": None, "more": None}
