"""Questions of the agent at the terminal: approvals by one key, and forms by the JSON Schema of an interrupt.

Rules:

- The answer to a form is checked by the whole schema before it is sent, because a server refuses a wrong one for good.
- A schema is an agent's. Nothing outside it is loaded, whatever it refers to.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

import click
import yaml
from ag_ui.core import Interrupt
from jsonschema import Draft202012Validator, SchemaError, ValidationError  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

from agui_client import DECLINE, Approval, Decision, Declined
from agui_client.interrupts import ELICITATION
from agui_container.cli.export import as_json
from agui_container.cli.failure import without_controls
from agui_container.cli.signals import ctrl_c_calls
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.screen import Screen

Schema = Mapping[str, object]

KEYS = {"y": "allow", "n": "deny", "e": "edit", "l": "later"}
ANSWER_KEYS = {"y": "answer", "n": "decline", "c": "cancel"}
"""For a question of an MCP server, which reads a refusal."""

LINK_KEYS = {"y": "continue", "c": "cancel"}

SKIPPED = object()
"""The answer to a field that need not be there."""


async def decide(approval: Approval, asker: Asker, screen: Screen) -> Decision | None:
    """Ask for a decision about a call. None leaves the call waiting."""
    screen.note(approval.message + (f" {approval.reason}" if approval.reason else ""))
    screen.markdown(f"```json\n{as_json(approval.arguments)}\n```")
    while True:
        match await asker.key(f"Allow {without_controls(approval.tool_name)}?", KEYS):
            case "y":
                return approval.approve()
            case "n":
                return approval.deny((await asker.line("Reason for the model (Enter for none):")).strip() or None)
            case "l":
                return None
        try:
            return approval.edit(await edit(approval.arguments or {}, asker))
        except click.ClickException as error:
            screen.error(error.format_message())


async def edit(arguments: dict[str, object], asker: Asker) -> dict[str, object]:
    """Open arguments in ``$EDITOR``, which gets Ctrl-C.

    Raises:
        ClickException: the editor fails, or the text has not changed or has no arguments.
    """
    with ctrl_c_calls(lambda: None), asker.lent():
        text = await asyncio.to_thread(click.edit, as_json(arguments), extension=".json")
    if text is None:
        raise click.ClickException("The arguments are as they were.")
    try:
        edited = json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"This is no JSON: {error}") from None
    if not isinstance(edited, dict):
        raise click.ClickException("The arguments must be a JSON object.")
    return edited


# --- forms ------------------------------------------------------------------------------------------------------------


async def fill(interrupt: Interrupt, asker: Asker, screen: Screen) -> object:
    """Ask for the answer to an interrupt. Raises ``Declined`` if the person cancels it or ends the input."""
    screen.note(interrupt.message or interrupt.reason)
    schema = interrupt.response_schema or {"type": "string"}
    try:
        if await _is_declined(interrupt, schema, asker, screen):
            return DECLINE
        while True:
            try:
                Draft202012Validator.check_schema(schema)
                answer = await _ask_value(schema, asker, screen)
                Draft202012Validator(dict(schema), registry=Registry()).validate(answer)
            except (SchemaError, Unresolvable) as error:
                reason = error.message if isinstance(error, SchemaError) else error
                screen.error(f"The question cannot be answered, because its schema is invalid: {reason}")
                raise Declined from None
            except ValidationError as error:
                screen.error(f"{'.'.join(map(str, error.path)) or 'The answer'}: {error.message}")
            else:
                return answer
    except (EOFError, KeyboardInterrupt):
        raise Declined from None


async def _is_declined(interrupt: Interrupt, schema: Schema, asker: Asker, screen: Screen) -> bool:
    """Show the link, and ask whether the person wants to answer at all. Raises ``Declined`` if not."""
    link = (interrupt.metadata or {}).get("url")
    if isinstance(link, str):
        screen.note(link)
    elif interrupt.reason != ELICITATION:
        return False
    keys = ANSWER_KEYS if interrupt.reason == ELICITATION else LINK_KEYS
    if "action" in fields_of(schema):  # the server would take a refusal for the value of that field
        keys = {key: meaning for key, meaning in keys.items() if key != "n"}
    key = await asker.key("Answer?", keys)
    if key == "c":
        raise Declined
    return key == "n"


def fields_of(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


async def _ask_value(schema: Schema, asker: Asker, screen: Screen) -> object:
    if "properties" not in schema:
        return await _ask_field("Answer", schema, asker, screen, is_required=True)
    required = schema.get("required")
    answers: dict[str, object] = {}
    for name, field in fields_of(schema).items():
        is_required = isinstance(required, list) and name in required
        whole = {"$defs": schema.get("$defs", {}), **(field if isinstance(field, Mapping) else {})}
        answer = await _ask_field(name, whole, asker, screen, is_required=is_required)
        if answer is not SKIPPED:
            answers[name] = answer
    return answers


async def _ask_field(name: str, schema: Schema, asker: Asker, screen: Screen, *, is_required: bool) -> object:
    """Ask until a line has a reading that fits. An empty line skips a field that need not be there."""
    default, validator = schema.get("default"), Draft202012Validator(schema, registry=Registry())
    question = str(schema.get("title") or name) + (f" ({schema['description']})" if "description" in schema else "")
    if choices := ", ".join(choices_of(schema, schema.get("$defs", {}))):
        question += f" [{choices}]"
    if schema.get("type") == "array":
        question += " (several with commas)"
    if default is not None:
        question += f" (Enter for {default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)})"
    elif not is_required:
        question += " (Enter for none)"
    while True:
        text = await asker.line(f"{question}:")
        if not text and (default is not None or not is_required):
            return SKIPPED if default is None else default
        for value in readings_of(text):
            if validator.is_valid(value):
                return value
        screen.error("This does not fit.")


def readings_of(text: str) -> Iterator[object]:
    """Yield what a line may mean: its text, a value of YAML such as ``3`` or ``yes``, or a list such as ``a, b``."""
    yield text
    for written in (text, f"[{text}]"):
        with suppress(yaml.YAMLError):
            yield yaml.safe_load(written)


def choices_of(schema: object, definitions: object) -> Iterator[str]:
    """Yield the values to choose from, with the titles that MCP servers give them."""
    match schema:
        case {"const": value, "title": title}:
            yield f"{value} ({title})"
        case {"const": value}:
            yield str(value)
        case {"enum": list(values), "enumNames": list(titles)}:
            yield from (f"{value} ({title})" for value, title in zip(values, titles, strict=False))
        case {"enum": list(values)}:
            yield from map(str, values)
        case {"type": "boolean"}:
            yield from ("yes", "no")
        case {"$ref": str(reference)} if isinstance(definitions, Mapping):
            name = reference.removeprefix("#/$defs/")
            others = {each: definitions[each] for each in definitions if each != name}  # a definition may name itself
            yield from choices_of(definitions.get(name), others)
        case {"oneOf": list(parts)} | {"anyOf": list(parts)} | {"items": parts}:
            for part in parts if isinstance(parts, list) else [parts]:
                yield from choices_of(part, definitions)
