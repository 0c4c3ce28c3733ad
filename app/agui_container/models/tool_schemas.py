"""Tools as model providers accept them: schemas of MCP servers and clients, brought into the form that all take.

One refused tool makes a provider refuse the whole request. So a schema is always an object with properties. Keywords
that no provider takes at the top level move into the description, and the properties of their variants become optional
properties. A tool that is refused nevertheless is left out, or its description is shortened if that was the reason.

Sources: "Invalid schema for function" of OpenAI (object schema missing properties; no ``oneOf``, ``anyOf``, ``allOf``,
``enum``, ``const`` or ``not`` at the top level). Claude's ``input_schema`` on Bedrock (the same combinations; names of
top-level properties match ``[a-zA-Z0-9_.-]{1,64}``).
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ag_ui.core import Tool as ToolSpec
from pydantic_core import from_json, to_json

from agui_container.log_values import format_fields
from agui_container.protocol.strict_json import without_large_integers

logger = logging.getLogger(__name__)

Schema = dict[str, object]

COMBINATIONS = ("allOf", "anyOf", "oneOf")
MOVED = (*COMBINATIONS, "enum", "const", "not")
"""Keywords that no provider takes at the top level of a schema."""

MAX_NAME = 64
_VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_LENGTH = 8

DESCRIBED = "The arguments must also match this JSON Schema:"


MAX_REFUSALS = 32
"""Largest number of times that one call is repeated because of a refused tool."""
MAX_REMEMBERED = 1_000
"""Largest number of refused tools that are remembered. A forgotten one is refused again."""

_PLACE = re.compile(
    r"\b(?:function_declarations|tools(?!\[\d+\]\.function_declarations))"
    r"(?:\[(?P<index>\d+)\]|\.(?P<number>\d+)(?P<from_one>\.member)?|['\"], ?(?P<entry>\d+))"
)
"""Place of a tool. Gemini's endpoint puts all tools into the declarations of its first one."""
_MESSAGE = re.compile(r"\bmessages[.\[]\d")
"""Place of a message. A place behind it is in that message."""
_NAMED = re.compile(r"\b(?:function|tool) (?P<quote>['\"])(?P<name>[^'\"]+)(?P=quote)", re.IGNORECASE)
_LIMIT = re.compile(r"(?:maximum length|less than or equal to|at most) (\d+)")


def wire_call_id(number: int) -> str:
    """Return the id of a call by its number in the conversation, so that each request has the same ids.

    Nine letters and digits satisfy the strictest server (Mistral).
    """
    return f"call{number:05d}"


def wire_name(name: str) -> str:
    """Return a name itself if providers take it, or else its valid characters and a hash of the whole name."""
    if _VALID.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    return f"{_INVALID.sub('_', name)[: MAX_NAME - _HASH_LENGTH - 1]}_{digest}"


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Map wire names to names. If two names have the same wire name, the first wins."""
    by_wire_name: dict[str, str] = {}
    for name in names:
        by_wire_name.setdefault(wire_name(name), name)
    return by_wire_name


class ProviderTools:
    """Conversion of tools for one model, with the memory of those that its provider has refused."""

    def __init__(self, model: str = "", property_name: re.Pattern[str] | None = None) -> None:
        self._model = model
        self._property_name = property_name
        self._limits: dict[bytes, int] = {}
        """Limit of the description of a refused tool, 0 if it is left out. A tool that changes is offered again."""

    def convert(self, tools: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
        """Of tools with the same wire name the first wins."""
        by_name: dict[str, ToolSpec] = {}
        for tool in tools:
            by_name.setdefault(wire_name(tool.name), tool)
        limits = {name: self._limits.get(_digest(tool)) for name, tool in by_name.items()} if self._limits else {}
        return {
            name: _shorten(_normalise(tool, self._property_name), limits.get(name))
            for name, tool in by_name.items()
            if limits.get(name) != 0
        }

    def learn(self, error: str, tools: Sequence[ToolSpec], sent: Mapping[str, ToolSpec]) -> bool:
        """Return True if a provider's error names a tool, which is changed or left out from now on.

        ``convert`` has made ``sent`` of ``tools``.
        """
        name = _named_tool(error, list(sent))
        if name is None:
            return False
        found = _LIMIT.search(error) if "description" in error else None
        limit = int(found[1]) if found and int(found[1]) < len(sent[name].description) else 0
        if len(self._limits) >= MAX_REMEMBERED:
            self._limits.clear()
        self._limits[_digest(next(tool for tool in tools if wire_name(tool.name) == name))] = limit
        fields = {"model": self._model, "tool": sent[name].name, "description_limit": limit}
        logger.warning("tool refused by the model provider %s", format_fields(fields))
        return True


def _digest(tool: ToolSpec) -> bytes:
    return hashlib.sha256(to_json((tool.name, tool.description, tool.parameters))).digest()


def _shorten(tool: ToolSpec, limit: int | None) -> ToolSpec:
    return tool.model_copy(update={"description": tool.description[:limit]}) if limit else tool


def names_tool(error: str) -> bool:
    return bool(_place(error) or _NAMED.search(error))


def _place(error: str) -> re.Match[str] | None:
    place = _PLACE.search(error)
    return None if place is None or _MESSAGE.search(error, 0, place.start()) else place


def _named_tool(error: str, sent: Sequence[str]) -> str | None:
    if (named := _NAMED.search(error)) and named["name"] in sent:
        return named["name"]
    place = _place(error)
    if place is None:
        return None
    # Validators of AWS count members from 1.
    at = int(place["index"] or place["number"] or place["entry"]) - bool(place["from_one"])
    return sent[at] if 0 <= at < len(sent) else None


# --- schemas ----------------------------------------------------------------------------------------------------------


def _normalise(tool: ToolSpec, property_name: re.Pattern[str] | None) -> ToolSpec:
    root = _as_object(from_json(without_large_integers(to_json(tool.parameters, inf_nan_mode="null"))))
    schema = {key: value for key, value in root.items() if key not in {*MOVED, "$ref"}}
    described: Schema = {key: root[key] for key in MOVED if key in root}
    properties, required = _as_object(schema.get("properties")), list(_texts(schema.get("required")))
    for variant, is_required in _variants(root):
        properties = {**_as_object(variant.get("properties")), **properties}
        required += [name for name in _texts(variant.get("required")) if is_required and name not in required]
    odd = {name: value for name, value in properties.items() if property_name and not property_name.fullmatch(name)}
    if odd:
        described["properties"] = odd
        described |= {"required": names} if (names := [name for name in required if name in odd]) else {}
        schema = {key: value for key, value in schema.items() if key != "additionalProperties" or value is not False}
    schema |= {"type": "object", "properties": {name: properties[name] for name in properties if name not in odd}}
    schema["required"] = [name for name in required if name not in odd]
    if not schema["required"]:
        del schema["required"]
    return tool.model_copy(update={"description": _description(tool.description, described), "parameters": schema})


def _as_object(value: object) -> Schema:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> Iterator[str]:
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, str))


def _variants(root: Schema) -> Iterator[tuple[Schema, bool]]:
    """Iterate over the schemas that the top level refers to, each with True if the arguments must match it."""
    if "$ref" in root:
        yield _resolve({"$ref": root["$ref"]}, root), True
    for keyword in COMBINATIONS:
        listed = root.get(keyword)
        for variant in listed if isinstance(listed, list) else ():
            yield _resolve(_as_object(variant), root), keyword == "allOf"


def _resolve(schema: Schema, root: Schema) -> Schema:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    value: object = root
    for name in reference.removeprefix("#/").split("/"):
        value = _as_object(value).get(name)
    return _as_object(value)


def _description(text: str, described: Schema) -> str:
    return f"{text}\n\n{DESCRIBED} {to_json(described).decode()}".strip() if described else text
