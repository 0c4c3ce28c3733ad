"""JSON Patch in place: every operation, ways to fail, and that a patch is done as a whole or not at all."""

import copy
from typing import Any

import pytest
from ag_ui.core import StateDeltaEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from agui_core.json_patch import MAX_BYTES, MAX_DEPTH, PatchError, apply_patch

Json = Any


def delta(*operations: Json) -> StateDeltaEvent:
    return StateDeltaEvent.model_validate({"delta": list(operations)})


def patched(document: Json, *operations: Json) -> Json:
    """Return the document after the patch. The given document stays unchanged."""
    return apply_patch(copy.deepcopy(document), delta(*operations))


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({}, {"op": "add", "path": "/a", "value": 1}, {"a": 1}),
        ({"l": [1, 3]}, {"op": "add", "path": "/l/1", "value": 2}, {"l": [1, 2, 3]}),
        ({"l": [1]}, {"op": "add", "path": "/l/-", "value": 2}, {"l": [1, 2]}),
        ({"a/b": {"m~n": 1}}, {"op": "replace", "path": "/a~1b/m~0n", "value": 2}, {"a/b": {"m~n": 2}}),
        ({"a": {"b": 1}, "c": 2}, {"op": "remove", "path": "/a/b"}, {"a": {}, "c": 2}),
        ({"a": 1}, {"op": "remove", "path": ""}, None),
        (1, {"op": "replace", "path": "", "value": {"a": 1}}, {"a": 1}),
        ({"a": [1], "b": []}, {"op": "move", "from": "/a/0", "path": "/b/-"}, {"a": [], "b": [1]}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": [1, {"b": None}]}, {"op": "test", "path": "/a", "value": [1.0, {"b": None}]}, {"a": [1, {"b": None}]}),
    ],
)
def test_an_operation_does_what_rfc_6902_says(document: Json, operation: Json, expected: Json) -> None:
    assert patched(document, operation) == expected


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({}, {"op": "remove", "path": "/a"}),
        ({}, {"op": "add", "path": "/a/b", "value": 1}),
        ([1], {"op": "add", "path": "/2", "value": 1}),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}),
        ({"a": 1}, {"op": "move", "from": "/b", "path": "/a"}),
        ({"a": 1}, {"op": "copy", "from": "/b", "path": "/a"}),
        ([1], {"op": "copy", "from": "/-", "path": "/0"}),
        ([1], {"op": "move", "from": "/-", "path": "/0"}),
        ([1], {"op": "test", "path": "/-", "value": 1}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}),
        ({"a": {"b": 1}}, {"op": "test", "path": "/a", "value": {"c": 1}}),
    ],
)
def test_an_operation_that_does_not_apply_is_an_error(document: Json, operation: Json) -> None:
    with pytest.raises(PatchError, match="operation 1"):
        patched(document, operation)


def test_the_text_of_an_error_names_the_operation_and_shows_nothing_of_the_document() -> None:
    with pytest.raises(PatchError) as raised:
        patched({"a": "private"}, {"op": "remove", "path": "/a"}, {"op": "replace", "path": "/b/c", "value": 1})
    assert str(raised.value) == "operation 2 (replace '/b/c'): the document has no such place"
    with pytest.raises(PatchError) as raised:
        patched({"a": "private"}, {"op": "test", "path": "/a", "value": "other"})
    assert str(raised.value) == "operation 1 (test '/a'): the value is not equal"


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
    target, expected = copy.deepcopy(document), copy.deepcopy(document)
    try:
        for operation in patch:
            expected = patched(expected, operation)
    except PatchError:
        with pytest.raises(PatchError):
            apply_patch(target, delta(*patch))
        expected = document
    else:
        target = apply_patch(target, delta(*patch))
    assert to_json(target) == to_json(expected)


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_document_gets_no_deeper_than_it_can_be_read() -> None:
    document = {"a": nested(MAX_DEPTH // 2)}
    path, value = "/a" * (MAX_DEPTH // 2), nested(MAX_DEPTH // 2 + 1)
    for operation in (
        {"op": "replace", "path": path, "value": value},
        {"op": "add", "path": path, "value": value},
        {"op": "copy", "from": "/a", "path": path},
    ):
        with pytest.raises(PatchError, match="nested too deeply"):
            apply_patch(document, delta(operation))
        assert document == {"a": nested(MAX_DEPTH // 2)}
    assert from_json(to_json(document)) == document


def test_a_document_does_not_grow_without_limit_by_copies_of_itself() -> None:
    document: Json = {"a": MAX_BYTES // 20 * "x"}
    doubled = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(30)]
    with pytest.raises(PatchError, match=r"operation 5 \(copy '/4'\): the document would be too large"):
        apply_patch(document, delta(*doubled))
    assert document == {"a": MAX_BYTES // 20 * "x"}
    for operation in doubled[:4]:
        document = apply_patch(document, delta(operation))
    with pytest.raises(PatchError, match="too large"):
        apply_patch(document, delta(doubled[4]))
