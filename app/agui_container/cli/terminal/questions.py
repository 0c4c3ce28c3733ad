"""Questions of the agent at the terminal: approvals by one key, and forms by the JSON Schema of an interrupt.

Rules:

- The answer to a form is checked by the whole schema before it is sent, because a server refuses a wrong one for good.
- A schema is an agent's. Nothing outside it is loaded, whatever it refers to.
"""

import asyncio
import json
from collections.abc import Mapping

import click
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

BOOLEANS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
JSON_HINTS = {"integer": " (a number)", "number": " (a number)", "array": " (JSON)", "object": " (JSON)"}
"""How to type a value that is typed as JSON."""

HINTS = {"boolean": " [y/n]", **JSON_HINTS}

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
                answer = await _ask_value(resolved(schema, schema), asker, screen)
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
        answer = await _ask_field(name, resolved(field, schema), asker, screen, is_required=is_required)
        if answer is not SKIPPED:
            answers[name] = answer
    return answers


async def _ask_field(name: str, schema: Schema, asker: Asker, screen: Screen, *, is_required: bool) -> object:
    """Ask until the answer has the type of the field. An empty answer skips a field that need not be there."""
    question = str(schema.get("title") or name) + (f" ({schema['description']})" if "description" in schema else "")
    kind, default, items = str(schema.get("type")), schema.get("default"), schema.get("items")
    listed = items if kind == "array" and isinstance(items, Mapping) else None
    options, is_list, hint = options_of(listed or schema), listed is not None, HINTS.get(kind, "")
    if options:
        screen.note(f"{question}:\n" + "\n".join(f"  {number}. {title}" for number, (_, title) in options.items()))
        question, hint = f"1 to {len(options)}", ", several with commas" if is_list else ""
    shown = default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)
    optional = f" (Enter for {shown})" if default is not None else "" if is_required else " (Enter for none)"
    while True:
        text = await asker.line(f"{question}{optional}{hint}:")
        if not text and (default is not None or not is_required):
            return SKIPPED if default is None else default
        try:
            if options:
                chosen = [options[int(number)][0] for number in (text.split(",") if is_list else [text])]
                return chosen if is_list else chosen[0]
            if kind == "boolean":
                return BOOLEANS[text.lower()]
            return json.loads(text) if kind in JSON_HINTS else text
        except (ValueError, KeyError):
            screen.error("This does not fit.")


def options_of(schema: Schema) -> dict[int, tuple[object, str]]:
    """Return the values to choose from, with titles, by number. MCP servers write titled ones as constants."""
    values, names = schema.get("enum"), schema.get("enumNames")
    either = schema.get("oneOf") or schema.get("anyOf")
    alternatives = either if isinstance(either, list) else []
    if isinstance(values, list):
        titles = names if isinstance(names, list) and len(names) == len(values) else values
        return dict(enumerate(zip(values, map(str, titles), strict=True), 1))
    constants = [it for it in alternatives if isinstance(it, Mapping) and "const" in it]
    if len(constants) < len(alternatives):
        return {}
    return dict(enumerate(((each["const"], str(each.get("title", each["const"]))) for each in constants), 1))


def resolved(schema: object, root: Schema) -> Schema:
    """Return a schema with its definition in ``$defs`` in place of a reference, and without the choice of null."""
    if not isinstance(schema, Mapping):
        return {}
    definitions, options = root.get("$defs"), schema.get("anyOf")
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if isinstance(definitions, Mapping) and name in definitions:
        return {"$defs": definitions, **definitions[name], **{key: schema[key] for key in schema if key != "$ref"}}
    typed = [each for each in options if each != {"type": "null"}] if isinstance(options, list) else []
    if len(typed) == 1:
        return {**resolved(typed[0], root), **{key: schema[key] for key in schema if key != "anyOf"}}
    return schema
