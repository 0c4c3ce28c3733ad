"""``@tool``: the description for the model, the arguments of the function, and refusals."""

import datetime as dt
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated

import pytest
from pydantic import Field

from agui_container.tools.function_tool import tool
from agui_core.function_schema import ToolDefinitionError
from tests.tools.doubles import Colour, Item, Point, parameters_of

ITEM = {
    "description": "One line of an order.",
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer", "default": 1, "minimum": 1, "description": "How many"},
        "parts": {"type": "array", "default": [], "items": {"$ref": "#/$defs/Item"}},
    },
    "required": ["title"],
}
COLOUR = {"description": "A colour.", "enum": ["red", "blue"], "type": "string"}
POSITIVE = {"type": "integer", "exclusiveMinimum": 0, "description": "Positive"}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
    "required": ["x"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("hint", "schema", "definitions"),
    [
        (int, {"type": "integer"}, {}),
        (dt.date, {"type": "string", "format": "date"}, {}),
        (Annotated[int, Field(gt=0, description="Positive")], POSITIVE, {}),
        (Colour, {"$ref": "#/$defs/Colour"}, {"Colour": COLOUR}),
        (Item, {"$ref": "#/$defs/Item"}, {"Item": ITEM}),
        (Point, {"$ref": "#/$defs/Point"}, {"Point": POINT}),
        (list[Item], {"type": "array", "items": {"$ref": "#/$defs/Item"}}, {"Item": ITEM}),
    ],
)
def test_the_schema_of_an_argument(
    hint: object, schema: Mapping[str, object], definitions: Mapping[str, object]
) -> None:
    def function(a: object) -> None: ...

    function.__annotations__["a"] = hint
    parameters = parameters_of(tool(function))
    assert parameters["properties"] == {"a": schema}
    assert parameters.get("$defs", {}) == definitions
    assert (parameters["type"], parameters["required"], parameters["additionalProperties"]) == ("object", ["a"], False)


def test_arguments_with_defaults_are_optional() -> None:
    @tool
    def function(a: int, b: str = "x", *, c: Colour = Colour.RED, d: object = object()) -> None: ...

    assert parameters_of(function)["required"] == ["a"]
    properties = parameters_of(function)["properties"]
    assert properties["b"] == {"type": "string", "default": "x"}
    assert properties["c"] == {"$ref": "#/$defs/Colour", "default": "red"}
    assert properties["d"] == {}  # what JSON cannot hold is not shown


def google(a: int, b: int = 2) -> None:
    """Add two numbers.

    Slowly: one by one.

    Args:
        a: The first number,
            on two lines.
        b (int, optional): The second: not the first.

    Returns:
        Nothing.
    """


def numpy(a: int, b: int = 2) -> None:
    """Add two numbers.

    Slowly: one by one.

    Parameters
    ----------
    a : int
        The first number,
        on two lines.
    b : int, optional
        The second: not the first.
    """


def sphinx(a: int, b: int = 2) -> None:
    """Add two numbers.

    Slowly: one by one.

    :param a: The first number,
        on two lines.
    :param b: The second: not the first.
    :returns: Nothing.
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_descriptions_come_from_the_docstring(function: Callable[..., object]) -> None:
    made = tool(function)
    spec = made.spec
    assert spec.name == function.__name__
    assert spec.description == "Add two numbers.\n\nSlowly: one by one."
    described = {name: schema["description"] for name, schema in parameters_of(made)["properties"].items()}
    assert described == {"a": "The first number, on two lines.", "b": "The second: not the first."}


def test_arguments_of_the_decorator_win_over_everything() -> None:
    @tool(name="other", description="Something else.", timeout=3)
    def function() -> None:
        """Do it."""

    assert (function.spec.name, function.spec.description, function.timeout) == ("other", "Something else.", 3)


def test_without_a_docstring_the_name_is_the_description() -> None:
    @tool
    def function() -> None: ...

    assert function.spec.description == "function"
    assert parameters_of(function) == {"type": "object", "properties": {}, "additionalProperties": False}


class Unknown: ...


def many(*numbers: int) -> None: ...
def keywords(**options: int) -> None: ...
def positional(a: int, /) -> None: ...
def untyped(a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def unresolved(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def unsupported(a: Unknown) -> None: ...
def callback(a: Callable[[int], int]) -> None: ...
def field(a: int = Field(3)) -> None: ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (many, "'many' takes '*numbers: int', but a model gives each argument by its name."),
        (keywords, "'keywords' takes '**options: int', but a model gives each argument by its name."),
        (positional, "'positional' takes 'a: int', but a model gives each argument by its name."),
        (untyped, "'untyped' does not say the type of its argument 'a'."),
        (unresolved, "'unresolved' has a type that cannot be found: name 'Nowhere' is not defined."),
        (unsupported, "'unsupported' has an argument that no schema can describe: Unable to generate *Unknown*"),
        (callback, "'callback' has an argument that no schema can describe: Cannot generate a JsonSchema for *"),
        (field, "'field' has a Field as the default of 'a': write Annotated[type, Field(…)] instead."),
        (Unknown, "'Unknown' is type: a tool is a function or a bound method."),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_at_once(function: Callable[..., object], sentence: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(function)
    assert fnmatchcase(str(caught.value), sentence.replace("[", "[[]"))
