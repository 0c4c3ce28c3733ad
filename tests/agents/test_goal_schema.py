"""Schemas of callers: accepted and refused keywords, and bounded time for any schema and data."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from agui_container.agents.assistant.goals.schema_validation import (
    MAX_DATA,
    count_patterns,
    schema_problem,
    validation_errors,
)


def of(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


TREE = {**of(name={"type": "string"}, parts={"type": "array", "items": {"$ref": "#"}}), "additionalProperties": False}
REFERRING = {**of(price={"$ref": "#/$defs/Price"}), "$defs": {"Price": {"type": "number", "exclusiveMinimum": 0}}}
DOUBLING = {
    "type": "object",
    "allOf": [{"$ref": "#/$defs/s0"}],
    "$defs": {
        **{f"s{at}": {"allOf": [{"$ref": f"#/$defs/s{at + 1}"}] * 2} for at in range(40)},
        "s40": {"type": "object"},
    },
}


@pytest.mark.parametrize(
    "schema",
    [
        of(),
        of(pattern={"type": "string", "pattern": "^[a-z]+$"}, patternProperties={"type": "string"}),
        of(kind={"enum": ["a", 1, None]}, other={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
        {**of(), "title": "Anything", "examples": [{"pattern": "("}], "x-order": 1},
        TREE,
        REFERRING,
    ],
)
def test_a_schema_that_can_be_checked_is_taken(schema: dict[str, object]) -> None:
    assert schema_problem(schema) is None


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({}, ".type: must be 'object'"),
        ({"type": "array"}, ".type: must be 'object'"),
        ({"type": "object", "properties": 3}, ".properties: 3 is not of type 'object'."),
        (of(a={"type": "text"}), ".properties.a.type: 'text' is not valid"),
        (of(a={"pattern": "("}), ".properties.a.pattern: cannot be matched in linear time."),
        (of(a={"items": {"pattern": "(?=a)"}}), ".properties.a.items.pattern: cannot be matched in linear time."),
        (of(a={"anyOf": [True, {"patternProperties": {}}]}), ".properties.a.anyOf.1.patternProperties: is not checked"),
        (of(a={"unevaluatedItems": False}), ".properties.a.unevaluatedItems: is not checked here."),
        (of(a={"not": {"$schema": "http://json-schema.org/draft-07/schema#"}}), ".properties.a.not.$schema: is not"),
        (of(a={"$ref": "https://example.com/schema"}), ".properties.a.$ref: must be '#' or name one of the schema's"),
        (of(a={"$ref": "#/$defs/Price"}), ".properties.a.$ref: must be '#' or name one of the schema's own $defs."),
        (of(a={"$ref": "#/examples/0"}), ".properties.a.$ref: must be '#' or name one of the schema's own $defs."),
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused_by_its_place(schema: dict[str, object], place: str) -> None:
    assert (schema_problem(schema) or "").startswith(place)


@pytest.mark.parametrize(
    ("schema", "data", "wrong"),
    [
        (of(a={"pattern": "b+"}), {"a": "abbc"}, []),
        (of(a={"pattern": "^b+$"}), {"a": "abbc"}, ["'a': 'abbc' does not match '^b+$'"]),
        (of(a={"uniqueItems": True}), {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}, ["'a': has the same item twice"]),
        (of(a={"uniqueItems": True}), {"a": [{"x": 1}, {"x": 2}]}, []),
        (REFERRING, {"price": 0}, ["'price': 0 is less than or equal to the minimum of 0"]),
        (
            TREE,
            {"parts": [{"name": "b"}, {"parts": [{"name": 1}]}]},
            ["'parts.1.parts.0.name': 1 is not of type 'string'"],
        ),
        (of(a={"format": "date"}), {"a": "tomorrow"}, []),
        (of(a={"contains": {"const": "good"}}), {"a": ["bad"] * 100}, ['\'a\': no item matches {"const":"good"}']),
        ({**of(), "required": list("abcdefg")}, {}, [f"'{name}' is a required property" for name in "abcde"]),
    ],
)
def test_validation_errors_name_the_place_of_each_mistake(
    schema: dict[str, object], data: dict[str, object], wrong: list[str]
) -> None:
    assert schema_problem(schema) is None
    assert validation_errors(schema, data) == wrong


def test_a_long_fault_is_cut() -> None:
    (said,) = validation_errors(of(a={"type": "integer"}), {"a": "x" * 1_000})
    assert len(said) < 400
    assert said.startswith("'a': 'xxx")
    assert said.endswith("xxx' is not of type 'integer'")


def fan(leaf: object, width: int = 90, **more: object) -> dict[str, object]:
    """A schema that comes to the leaf ``width`` times ``width`` times."""
    middle = {"anyOf": [{"$ref": "#/$defs/leaf"}] * width}
    return {
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/middle"}] * width,
        "$defs": {"middle": middle, "leaf": leaf, **more},
    }


def deep(value: object, depth: int = 30) -> object:
    for _ in range(depth):
        value = [value]
    return value


LARGE = {"a": "x" * 90_000}
ROWS = of(
    rows={
        "type": "array",
        "items": {
            **of(
                id={"type": "integer", "minimum": 0},
                by={"type": "string", "maxLength": 50},
                kind={"enum": [*"abcdefghij"]},
                n={"type": "number"},
                on={"type": "boolean"},
            ),
            "required": ["id", "by", "kind", "n", "on"],
            "additionalProperties": False,
        },
    }
)

NESTED: dict[str, object] = {}
for _ in range(90):
    NESTED = {"parts": [NESTED]}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (DOUBLING, {}),
        ({"type": "object", "allOf": [{"$ref": "#"}]}, {}),
        (of(a={"items": {"allOf": [{"type": "integer"}] * 9}}), {"a": list(range(10_000))}),
        (of(a={"multipleOf": 0.5}), {"a": 10**400}),
        (fan({"anyOf": [False] * 900}), {}),
        (fan({"properties": {"a": False}}), LARGE),
        (fan({"required": [f"{at:x}" for at in range(2_000)]}), {}),
        (fan({"properties": {"a": {"contains": False, "minContains": 0}}, "maxProperties": 0}), {"a": ["x" * 90_000]}),
        (fan({"properties": {"a": {"type": "integer"}}, "required": ["a"]}), LARGE),
        (fan({"properties": {"a": {"enum": [*range(2_000)]}}}), {"a": -1}),
        (fan({"properties": {"a": {"enum": [deep([*range(2_000)])]}}}), {"a": deep([*range(1_999), -1])}),
        (fan({"properties": {"a": {"uniqueItems": True}}, "maxProperties": 0}), {"a": deep([*range(9_000)])}),
        (fan({"$ref": "#/$defs/never"}, never=False), LARGE),
    ],
)
def test_a_check_that_takes_too_much_work_is_given_up(schema: dict[str, object], data: dict[str, object]) -> None:
    assert schema_problem(schema) is None
    assert validation_errors(schema, data) == ["takes too much work to check"]


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (of(a={"pattern": "(a+)+$"}), {"a": "a" * 50_000 + "!"}),
        (of(a={"uniqueItems": True}), {"a": [*({"n": n} for n in range(9_000)), {"n": 0}]}),
    ],
)
def test_data_that_makes_backtracking_validators_slow_is_checked(
    schema: dict[str, object], data: dict[str, object]
) -> None:
    assert len(validation_errors(schema, data)) == 1


def test_ordinary_data_is_checked_however_much_it_is() -> None:
    row = {"by": "me", "kind": "j", "n": 1, "on": True}
    rows: list[dict[str, object]] = [{"id": at, **row} for at in range(1_999)]
    assert validation_errors(ROWS, {"rows": rows}) == []
    assert validation_errors(ROWS, {"rows": [*rows, {**row, "id": "none"}]}) == [
        "'rows.1999.id': 'none' is not of type 'integer'"
    ]


def test_deep_data_is_checked() -> None:
    assert validation_errors(TREE, NESTED) == []


def test_data_that_is_too_large_is_not_looked_at() -> None:
    assert validation_errors(of(), {"a": "x" * MAX_DATA}) == [f"has more than {MAX_DATA} bytes as JSON"]


def test_patterns_are_counted_wherever_they_are() -> None:
    schema = of(a={"pattern": "a"}, pattern={"anyOf": [{"pattern": "b"}, {"not": {"pattern": "c"}}, True]})
    assert count_patterns(schema) == 3


def test_a_check_that_makes_many_patterns_ready_is_given_up() -> None:
    """Others may have had room made for theirs."""
    schema = of(**{f"p{at}": {"pattern": f"given up {at}"} for at in range(40)})
    assert validation_errors(schema, {f"p{at}": f"given up {at}" for at in range(40)}) == [
        "takes too much work to check"
    ]


class CountingHandler(BaseHTTPRequestHandler):
    """Serves a schema, and counts the requests."""

    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"true")


@pytest.fixture
def schema_url() -> Iterator[str]:
    """The address of a schema on a server of this machine."""
    with HTTPServer(("127.0.0.1", 0), CountingHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/schema"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema", "$id"])
def test_a_schema_of_another_server_is_never_fetched(schema_url: str, keyword: str) -> None:
    schema = of(a={keyword: schema_url})
    assert schema_problem(schema) is not None
    with suppress(Exception):  # a schema that was not refused could not be checked either
        validation_errors(schema, {"a": 1})
    assert CountingHandler.requests == 0
