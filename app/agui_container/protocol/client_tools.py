"""Schemas of the tools that clients offer.

Rule: the arguments of a call are an object, so ``parameters`` is an object schema for every agent and model. Other
spellings are translated: no schema, an empty one, JSON as text, a missing ``type``. Anything else is refused with the
name of the tool, because a provider would refuse the whole request.

Source: AG-UI spec 1.1, basic/run-input#tools. An absent schema and an empty one mean the same.
"""

from typing import Any

from agui_container.protocol.strict_json import parse_finite_json, raise_validation_error

MAX_SHOWN_NAME = 64
"""Maximum number of characters of a tool's name in an error message."""


def normalise_tools(tools: object) -> None:
    """Make the ``parameters`` of these tools object schemas, in place. Raises ``AppError`` VALIDATION_ERROR."""
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict):
            schema = object_schema(tool.get("parameters"))
            if schema is None:
                raise_validation_error(f"tools.{at}.parameters: {schema_problem(tool.get('name'))}")
            tool["parameters"] = schema


def schema_problem(name: object) -> str:
    return f'the tool \'{str(name)[:MAX_SHOWN_NAME]}\' needs an object schema ("type": "object") or none.'


def object_schema(parameters: object) -> dict[str, Any] | None:
    """Return None for no schema of an object. An empty list counts as an empty object: PHP encodes both alike."""
    if isinstance(parameters, str):
        parameters = _parsed(parameters)
        if not isinstance(parameters, dict):
            return None
    if parameters in (None, [], {}):
        return {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        return None
    kinds, properties = parameters.get("type"), parameters.get("properties", {})
    if kinds != "object":
        if kinds is not None and not (isinstance(kinds, list) and "object" in kinds):
            return None
        parameters = {**parameters, "type": "object"}
    if properties in (None, []):
        return {**parameters, "properties": {}}
    return parameters if isinstance(properties, dict) else None


def _parsed(text: str) -> object:
    try:
        return parse_finite_json(text)
    except ValueError:
        return None
