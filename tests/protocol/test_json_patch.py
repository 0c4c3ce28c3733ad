"""JSON Patch in place: every operation, every way it fails, and that a patch is done as a whole or not at all."""

import copy
import json
from typing import Any

import pytest
from ag_ui.core import StateDeltaEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from agui_container.protocol.conversation.json_patch import (
    MAX_COPIED,
    MAX_DEPTH,
    JsonDocument,
    PatchError,
    is_equal_json,
)

Json = Any


def delta(*operations: Json) -> StateDeltaEvent:
    return StateDeltaEvent.model_validate({"delta": list(operations)})


def apply_patch(document: Json, *operations: Json) -> object:
    """Return the document after the patch. The given document stays unchanged."""
    target = JsonDocument(copy.deepcopy(document))
    target.apply(delta(*operations))
    return target.value


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": 1}, {"op": "add", "path": "", "value": [1]}, [1]),
        ({"l": [1, 3]}, {"op": "add", "path": "/l/1", "value": 2}, {"l": [1, 2, 3]}),
        ({"l": [1]}, {"op": "add", "path": "/l/1", "value": 2}, {"l": [1, 2]}),
        ({"l": [1]}, {"op": "add", "path": "/l/-", "value": 2}, {"l": [1, 2]}),
        ({"": 1}, {"op": "replace", "path": "/", "value": 2}, {"": 2}),
        ({"a/b": {"m~n": 1}}, {"op": "replace", "path": "/a~1b/m~0n", "value": 2}, {"a/b": {"m~n": 2}}),
        ({"~1": 1}, {"op": "remove", "path": "/~01"}, {}),
        ({"a": {"b": 1}, "c": 2}, {"op": "remove", "path": "/a/b"}, {"a": {}, "c": 2}),
        ([1, 2, 3], {"op": "remove", "path": "/1"}, [1, 3]),
        ({"a": 1}, {"op": "remove", "path": ""}, None),
        ([1, 2], {"op": "replace", "path": "/0", "value": None}, [None, 2]),
        (1, {"op": "replace", "path": "", "value": {"a": 1}}, {"a": 1}),
        ({"a": [1], "b": []}, {"op": "move", "from": "/a/0", "path": "/b/-"}, {"a": [], "b": [1]}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
        ([1, 2, 3], {"op": "move", "from": "/0", "path": "/2"}, [2, 3, 1]),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/ab"}, {"ab": 1}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": [1, {"b": None}]}, {"op": "test", "path": "/a", "value": [1.0, {"b": None}]}, {"a": [1, {"b": None}]}),
    ],
)
def test_an_operation_does_what_rfc_6902_says(document: Json, operation: Json, expected: Json) -> None:
    assert apply_patch(document, operation) == expected


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({}, {"op": "remove", "path": "/a"}),
        ({}, {"op": "replace", "path": "/a", "value": 1}),
        ({}, {"op": "add", "path": "/a/b", "value": 1}),
        ({"a": "text"}, {"op": "add", "path": "/a/0", "value": 1}),
        ([1], {"op": "add", "path": "/2", "value": 1}),
        ([1], {"op": "add", "path": "/01", "value": 1}),
        ([1], {"op": "add", "path": "/+1", "value": 1}),
        ([1], {"op": "add", "path": "/x", "value": 1}),
        ([1], {"op": "remove", "path": "/-"}),
        ([1], {"op": "replace", "path": "/1", "value": 1}),
        ([1], {"op": "replace", "path": "/" + 5000 * "9", "value": 1}),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}),
        ([[1], [2]], {"op": "move", "from": "/0", "path": "/0/0"}),
        ({"a": 1}, {"op": "move", "from": "/b", "path": "/a"}),
        ({"a": 1}, {"op": "copy", "from": "/b", "path": "/a"}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}),
        ({"a": 0}, {"op": "test", "path": "/a", "value": False}),
        ({"a": "1"}, {"op": "test", "path": "/a", "value": 1}),
        ({"a": [1]}, {"op": "test", "path": "/a", "value": [1, 2]}),
        ({"a": {"b": 1}}, {"op": "test", "path": "/a", "value": {"c": 1}}),
    ],
)
def test_an_operation_that_does_not_apply_is_an_error(document: Json, operation: Json) -> None:
    with pytest.raises(PatchError, match="operation 1"):
        apply_patch(document, operation)


def test_the_error_names_the_operation_that_failed() -> None:
    operations = {"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}
    with pytest.raises(PatchError, match=r"operation 2 \(remove '/b'\): there is no member 'b'"):
        apply_patch({}, *operations)


def too_deep() -> Json:
    value: list[Json] = []
    for _ in range(300):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], too_deep(), [object()]])
def test_a_value_that_is_no_json_leaves_the_document_as_it_was(value: Json) -> None:
    document = JsonDocument({"b": [1]})
    patch = delta({"op": "remove", "path": "/b/0"}, {"op": "add", "path": "/a", "value": value})
    for attempt in (document.apply, document.check):
        with pytest.raises(ValueError, match=r".+"):
            attempt(patch)
        assert document.value == {"b": [1]}


def test_values_are_copies() -> None:
    value = {"items": [1]}
    document = JsonDocument({})
    document.apply(delta({"op": "add", "path": "/a", "value": value}, {"op": "copy", "from": "/a", "path": "/b"}))
    document.apply(delta({"op": "add", "path": "/a/items/-", "value": 2}))
    value["items"].append(3)
    assert document.value == {"a": {"items": [1, 2]}, "b": {"items": [1]}}


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
paths = st.lists(st.sampled_from(["a", "b", "c", "0", "1", "-"]), max_size=3).map(
    lambda keys: "".join(f"/{k}" for k in keys)
)
operations = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": paths, "value": values}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": paths}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "from": paths, "path": paths}),
)


@given(values, st.lists(operations, max_size=5))
def test_a_patch_is_done_as_a_whole_or_not_at_all(document: Json, patch: list[Json]) -> None:
    target, expected = JsonDocument(copy.deepcopy(document)), copy.deepcopy(document)
    try:
        for operation in patch:
            expected = apply_patch(expected, operation)
    except PatchError:
        with pytest.raises(PatchError):
            target.apply(delta(*patch))
        expected = document
    else:
        target.check(delta(*patch))
        assert is_equal_json(target.value, document)
        target.apply(delta(*patch))
    assert is_equal_json(target.value, expected)


@given(values, values)
def test_values_are_equal_where_their_json_is(one: Json, other: Json) -> None:
    assert is_equal_json(one, other) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_document_gets_no_deeper_than_it_can_be_read() -> None:
    document = JsonDocument({"a": nested(MAX_DEPTH // 2)})
    path, value = "/a" * (MAX_DEPTH // 2), nested(MAX_DEPTH // 2 + 1)
    for operation in (
        {"op": "replace", "path": path, "value": value},
        {"op": "add", "path": path, "value": value},
        {"op": "copy", "from": "/a", "path": path},
    ):
        with pytest.raises(PatchError, match="nested too deeply"):
            document.apply(delta(operation))
        assert document.value == {"a": nested(MAX_DEPTH // 2)}
    assert from_json(to_json(document.value)) == document.value


def test_a_value_may_be_as_deep_as_the_document_may_be() -> None:
    deepest = nested(MAX_DEPTH - 2)  # beside the document itself and the number inside
    assert apply_patch({}, {"op": "add", "path": "/a", "value": deepest}) == {"a": deepest}
    with pytest.raises(PatchError, match="nested too deeply"):
        apply_patch({}, {"op": "add", "path": "/a", "value": {"a": deepest}})


@pytest.mark.parametrize("before", [0, 14])
def test_copies_of_copies_come_to_an_end(before: int) -> None:
    """True if one delta makes them, False if several do."""
    document = JsonDocument({"a": ["x" * 100]})
    double = {"op": "copy", "from": "/a", "path": "/a/-"}
    for _ in range(before):
        document.apply(delta(double))
    as_it_was = len(to_json(document.value))
    with pytest.raises(PatchError, match="too much would be copied"):
        document.apply(delta(*[double] * (40 - before)))
    assert len(to_json(document.value)) == as_it_was < MAX_COPIED
