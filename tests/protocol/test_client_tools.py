"""The schema of a client's tool: what means an object schema becomes one, anything else is refused by name."""

import json

import pytest

from agui_container.protocol.client_input import object_schema
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import RunRequest, parse
from tests.engine.doubles import Json, ask

NONE: Json = {"type": "object", "properties": {}}
PROPERTIES: Json = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
SCHEMA: Json = {**PROPERTIES, "type": "object"}

NORMALISED: dict[str, tuple[object, Json]] = {
    "an object schema": (SCHEMA, SCHEMA),
    "one without properties": ({"type": "object"}, {"type": "object"}),
    "null": (None, NONE),
    "an empty object": ({}, NONE),
    "an empty list": ([], NONE),
    "no type": (PROPERTIES, SCHEMA),
    "a type that is null": ({**PROPERTIES, "type": None}, SCHEMA),
    "an object or null": ({**PROPERTIES, "type": ["object", "null"]}, SCHEMA),
    "alternatives": ({"anyOf": [SCHEMA]}, {"type": "object", "anyOf": [SCHEMA]}),
    "JSON as text": (json.dumps(SCHEMA), SCHEMA),
    "JSON as text, without a type": (json.dumps(PROPERTIES), SCHEMA),
    "an empty object as text": ("{}", NONE),
    "properties of null": ({"type": "object", "properties": None}, NONE),
    "properties of PHP": ({"type": "object", "properties": []}, NONE),
}

REFUSED: dict[str, object] = {
    "a type of text": {"type": "string"},
    "a type of a list": {"type": "array", "items": SCHEMA},
    "types without an object": {"type": ["string", "null"]},
    "a type that is none": {"type": 5},
    "text": "string",
    "empty text": "",
    "text of a list": "[]",
    "text of null": "null",
    "a list": [{"name": "a", "type": "string"}],
    "true": True,
    "a number": 0,
    "properties that are a list": {"type": "object", "properties": ["a"]},
}


@pytest.mark.parametrize(("parameters", "schema"), NORMALISED.values(), ids=NORMALISED)
def test_parameters_that_mean_an_object_schema_become_one(parameters: object, schema: Json) -> None:
    tool = {"name": "paint", "description": "d", "parameters": parameters, "own": 1}
    request = parse(json.dumps(ask(tools=[tool])).encode())
    assert isinstance(request, RunRequest)
    assert request.run_input.tools is not None
    assert request.run_input.tools[0].parameters == schema
    assert request.run_input.tools[0].model_extra == {"own": 1}


def test_a_tool_without_a_schema_has_no_arguments() -> None:
    request = parse(json.dumps(ask(tools=[{"name": "paint", "description": "d"}])).encode())
    assert isinstance(request, RunRequest)
    assert request.run_input.tools is not None
    assert request.run_input.tools[0].parameters == NONE


@pytest.mark.parametrize("parameters", REFUSED.values(), ids=REFUSED)
def test_any_other_schema_is_refused_with_the_name_of_the_tool(parameters: object) -> None:
    assert object_schema(parameters) is None
    tools = [{"name": "walk", "description": "d"}, {"name": "paint", "description": "d", "parameters": parameters}]
    with pytest.raises(AppError) as refused:
        parse(json.dumps(ask(tools=tools)).encode())
    expected = 'tools.1.parameters: the tool \'paint\' needs an object schema ("type": "object") or none.'
    assert refused.value.message == expected
