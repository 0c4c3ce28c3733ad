"""The agent's questions at the terminal, field by field, as their JSON Schema describes them.

Rules:

- An answer is checked by the whole schema before it is sent, because a server refuses a wrong one for good.
- A schema is an agent's. Nothing outside it is loaded, whatever it refers to.
"""

import json
from collections.abc import Mapping

from ag_ui.core import Interrupt
from jsonschema import Draft202012Validator, SchemaError, ValidationError  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

from agui_client import Declined
from agui_container.cli.terminal.asker import Asker, choices
from agui_container.cli.terminal.view import View

NUMBERS = {"integer": int, "number": float}
SKIPPED = object()
"""The answer to a field that need not be there."""

TEXT: Mapping[str, object] = {"type": "string"}
"""The schema of a question without one."""


async def fill(interrupt: Interrupt, asker: Asker, view: View) -> object:
    """Ask for the answer to an interrupt. Raises ``Declined`` if the person ends the input."""
    view.note(interrupt.message or interrupt.reason)
    schema = interrupt.response_schema or TEXT
    while True:
        try:
            Draft202012Validator.check_schema(schema)
            answer = await _ask_value("Answer", without_references(schema, schema), asker, view)
            Draft202012Validator(dict(schema), registry=Registry()).validate(answer)
        except (EOFError, KeyboardInterrupt):
            raise Declined from None
        except (SchemaError, Unresolvable) as error:
            reason = error.message if isinstance(error, SchemaError) else error
            view.error(f"The question cannot be answered, because its schema is invalid: {reason}")
            raise Declined from None
        except ValidationError as error:
            view.error(f"{'.'.join(map(str, error.path)) or 'The answer'}: {error.message}")
        else:
            return answer


async def _ask_value(name: str, schema: Mapping[str, object], asker: Asker, view: View) -> object:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return await _ask_field(name, schema, asker, view, is_required=True)
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    answers: dict[str, object] = {}
    for each, field in properties.items():
        answer = await _ask_field(each, without_references(field, schema), asker, view, is_required=each in needed)
        if answer is not SKIPPED:
            answers[each] = answer
    return answers


async def _ask_field(name: str, schema: Mapping[str, object], asker: Asker, view: View, *, is_required: bool) -> object:
    """Ask until the answer has the type of the field. An empty answer skips a field that need not be there."""
    question = str(schema.get("title") or name) + (f" ({schema['description']})" if "description" in schema else "")
    values = schema.get("enum")
    if isinstance(values, list):
        view.note(f"{question}:\n{choices(values)}")
        question = f"1 to {len(values)}"
    if not is_required:
        question += " (Enter for none)"
    while True:
        text = await asker.line(f"{question}{hint(schema)}:")
        if not text and not is_required:
            return SKIPPED
        try:
            return parse(text, schema)
        except (ValueError, KeyError):
            view.error("This does not fit.")


def without_references(schema: object, root: Mapping[str, object]) -> Mapping[str, object]:
    """Return a schema with its definition in ``$defs`` in place of a reference, and without the choice of null."""
    if not isinstance(schema, Mapping):
        return {}
    definitions, options = root.get("$defs"), schema.get("anyOf")
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if isinstance(definitions, Mapping) and name in definitions:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {"$defs": definitions, **definitions[name], **rest}
    if isinstance(options, list):
        typed = [each for each in options if each != {"type": "null"}]
        if len(typed) == 1:
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**without_references(typed[0], root), **rest}
    return schema


def hint(schema: Mapping[str, object]) -> str:
    """Return what to type for a field that is no text."""
    match schema.get("type"):
        case "boolean":
            return " [y/n]"
        case "integer" | "number":
            return " (a number)" if "enum" not in schema else ""
        case "array" | "object":
            return " (JSON)"
    return ""


def parse(text: str, schema: Mapping[str, object]) -> object:
    """Return what a person has typed as a value of the field. Raises ``ValueError`` or ``KeyError``."""
    values, kind = schema.get("enum"), schema.get("type")
    if isinstance(values, list):
        number = int(text)
        if not 1 <= number <= len(values):
            raise ValueError(text)
        return values[number - 1]
    if kind == "boolean":
        return {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}[text.lower()]
    if isinstance(kind, str) and kind in NUMBERS:
        return NUMBERS[kind](text)
    return json.loads(text) if kind in {"array", "object"} else text
