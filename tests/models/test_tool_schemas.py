"""Tools are sent in a form that each provider takes, a refused one costs only itself, and windows are known."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from ag_ui.core import Tool as ToolSpec

from agui_container.models import BedrockModel, BedrockOptions, OfflineModel, OpenAIModel, OpenAIOptions
from agui_container.models.bedrock.request import bedrock_tools
from agui_container.models.tool_schemas import DESCRIBED, MAX_NAME, ProviderTools, wire_name, wire_names
from agui_container.ports import ContextWindowed, Model

Schema = Mapping[str, Any]
NUMBER, TEXT = {"type": "number"}, {"type": "string"}
EMPTY = {"type": "object", "properties": {}}


def test_names_fit_stay_apart_are_mapped_back_and_never_change() -> None:
    names = ["now", "files/read", "files_read", "files.read", "n" * 64, "n" * 65, "n" * 66, "", "日本", "a\ud800"]
    fits = [wire_name(name) for name in names]
    assert wire_names(names) == dict(zip(fits, names, strict=True))
    assert [wire_name(name) for name in fits] == fits
    assert all(0 < len(name) <= MAX_NAME and name.isascii() for name in fits)
    assert (fits[0], fits[2], fits[4]) == ("now", "files_read", "n" * 64)
    assert wire_name("files/read") == "files_read_2b733164"


def spec(parameters: object, name: str = "add", description: str = "Adds.") -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters=parameters)


def openai_tools() -> ProviderTools:
    return ProviderTools()


def converted(tools: ProviderTools, parameters: object) -> tuple[Any, object]:
    """Return the schema that is sent, and the part of it that is in the description."""
    (tool,) = tools.convert([spec(parameters)]).values()
    text, found, described = tool.description.partition(f"\n\n{DESCRIBED} ")
    assert text == "Adds."
    return tool.parameters, json.loads(described) if found else None


UNCHANGED: Mapping[str, Schema] = {
    "properties": {"type": "object", "properties": {"a": NUMBER}, "required": ["a"], "additionalProperties": False},
    "combinations below the top level": {"type": "object", "properties": {"a": {"anyOf": [NUMBER, TEXT]}}},
    "definitions": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": NUMBER}},
}
NO_ARGUMENTS: Mapping[str, object] = {
    "none": None,
    "an empty schema": {},
    "no properties": {"type": "object"},
    "properties that are null": {"type": "object", "properties": None, "required": None},
    "no type": {"properties": {}},
    "a type that is null": {"type": None},
    "a type that is a list": {"type": ["object", "null"], "properties": {}},
    "a type that is no object": {"type": "string"},
    "text": "nonsense",
    "a list": [1],
}
OBJECT_A = {"type": "object", "properties": {"a": NUMBER}, "required": ["a"]}
OBJECT_B = {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}
BOTH = {"type": "object", "properties": {"a": NUMBER, "b": TEXT}}
MOVED: Mapping[str, tuple[Schema, Schema, object]] = {
    "oneOf": ({"oneOf": [OBJECT_A, OBJECT_B]}, BOTH, {"oneOf": [OBJECT_A, OBJECT_B]}),
    "allOf": ({"allOf": [OBJECT_A, OBJECT_B]}, {**BOTH, "required": ["a", "b"]}, {"allOf": [OBJECT_A, OBJECT_B]}),
    "a reference": (
        {"$ref": "#/$defs/a", "$defs": {"a": OBJECT_A}},
        {**OBJECT_A, "$defs": {"a": OBJECT_A}},
        None,
    ),
    "references that lead nowhere": (
        {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "http://x"}, 7]},
        EMPTY,
        {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "http://x"}, 7]},
    ),
    "enum, const and not": ({**BOTH, "enum": [{}], "const": 1, "not": {}}, BOTH, {"enum": [{}], "const": 1, "not": {}}),
    "a number that is not finite": (
        {"type": "object", "properties": {"a": {"maximum": float("inf")}}},
        {"type": "object", "properties": {"a": {"maximum": None}}},
        None,
    ),
}


def test_an_integer_that_no_double_holds_is_null_in_a_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"maximum": 10**5_000}}}
    assert converted(openai_tools(), schema) == ({"type": "object", "properties": {"a": {"maximum": None}}}, None)


@pytest.mark.parametrize("provider", [openai_tools, bedrock_tools])
@pytest.mark.parametrize("name", UNCHANGED)
def test_a_schema_that_every_provider_takes_is_sent_as_it_is(name: str, provider: Any) -> None:  # noqa: ANN401
    assert converted(provider(), UNCHANGED[name]) == (UNCHANGED[name], None)


@pytest.mark.parametrize("provider", [openai_tools, bedrock_tools])
@pytest.mark.parametrize("name", NO_ARGUMENTS)
def test_a_tool_without_arguments_is_an_object_with_properties(name: str, provider: Any) -> None:  # noqa: ANN401
    assert converted(provider(), NO_ARGUMENTS[name]) == (EMPTY, None)


@pytest.mark.parametrize("provider", [openai_tools, bedrock_tools])
@pytest.mark.parametrize("name", MOVED)
def test_keywords_that_are_refused_at_the_top_are_described(name: str, provider: Any) -> None:  # noqa: ANN401
    given, sent, described = MOVED[name]
    before = json.dumps(given)
    assert converted(provider(), given) == (sent, described)
    assert json.dumps(given) == before


def test_odd_names_of_properties_are_described_to_bedrock() -> None:
    odd = {"$filter": TEXT, "account number": NUMBER, "x" * 65: TEXT}
    given = {
        "type": "object",
        "properties": {"a": NUMBER, **odd},
        "required": ["a", "$filter"],
        "additionalProperties": False,
    }
    schema, described = converted(bedrock_tools(), given)
    assert schema == {"type": "object", "properties": {"a": NUMBER}, "required": ["a"]}
    assert described == {"properties": odd, "required": ["$filter"]}
    assert converted(openai_tools(), given) == (given, None)


def names(tools: ProviderTools, offered: Sequence[ToolSpec]) -> list[str]:
    return list(tools.convert(offered))


OFFERED = [spec(None, name) for name in ("a", "b.c", "d")]
ERRORS: Mapping[str, tuple[str, str | None]] = {
    "openai, by name": ("Invalid schema for function 'a': In context=(), object schema missing properties.", "a"),
    "openai, by place": ("tools[2].function.parameters bad", "d"),
    "claude on bedrock": ("The model returned: tools.1.custom.input_schema: JSON schema is invalid", "b.c"),
    "converse": ("The value at toolConfig.tools.2.toolSpec.inputSchema.json.type must be one of: object.", "d"),
    "aws counts from one": ("Value at 'toolConfig.tools.1.member.toolSpec.description' failed to satisfy", "a"),
    "by name, as a tool": ("Tool 'a' has an invalid schema", "a"),
    "gemini's compatible endpoint": (
        "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties: should be non-empty",
        "b.c",
    ),
    "a validator's location": ("{'loc': ['body', 'tools', 1, 'function', 'parameters'], 'msg': 'Invalid'}", "b.c"),
    "a place in a message": ("messages.1.content: tools.0 is unknown", None),
    "before the first": ("toolConfig.tools.0.member.toolSpec", None),
    "no tool": ("messages.1.content is invalid", None),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_tool_that_an_error_names_is_left_out(name: str) -> None:
    error, refused = ERRORS[name]
    tools = openai_tools()
    assert tools.learn(error, OFFERED, tools.convert(OFFERED)) is (refused is not None)
    assert names(tools, OFFERED) == [wire_name(tool.name) for tool in OFFERED if tool.name != refused]


def test_a_refused_tool_is_offered_again_when_it_changes() -> None:
    tools = openai_tools()
    tools.learn("tools[0] is bad", OFFERED, tools.convert(OFFERED))
    assert "a" not in names(tools, OFFERED)
    assert "a" in names(tools, [spec({"type": "object", "properties": {"x": NUMBER}}, "a")])


def test_a_description_over_the_limit_is_cut_first_and_left_out_if_that_does_not_help() -> None:
    tools, offered = openai_tools(), [spec({"anyOf": [OBJECT_A]}, description="x" * 2000)]
    error = "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024"
    tools.learn(error, offered, tools.convert(offered))
    (cut,) = tools.convert(offered).values()
    assert re.fullmatch("x{1024}", cut.description)
    tools.learn(error, offered, tools.convert(offered))
    assert tools.convert(offered) == {}


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        (BedrockModel("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), 200_000),
        (BedrockModel("amazon.nova-micro-v1:0"), 128_000),
        (BedrockModel("some.other-model"), None),
        (BedrockModel("some.other-model", BedrockOptions(context_window=9)), 9),
        (BedrockModel("amazon.nova-micro-v1:0", BedrockOptions(context_window=9)), 9),
        (OpenAIModel("gpt-4o-mini"), 128_000),
        (OpenAIModel("gpt-5-chat-latest"), None),
        (OpenAIModel("qwen3", options=OpenAIOptions(context_window=32_768)), 32_768),
        (OfflineModel(), None),
    ],
)
def test_a_model_tells_its_context_window_if_it_is_known(model: Model, tokens: int | None) -> None:
    assert isinstance(model, ContextWindowed)
    assert model.context_window == tokens
