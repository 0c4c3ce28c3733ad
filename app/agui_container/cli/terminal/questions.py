"""Questions of the agent at the terminal: approvals by one key, and forms by the JSON Schema of an interrupt.

Rules:

- The answer to a form is checked by the whole schema before it is sent, because a server refuses a wrong one for good.
- A schema is an agent's. Nothing outside it is loaded, whatever it refers to.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

import yaml
from ag_ui.core import Interrupt
from jsonschema import Draft202012Validator, SchemaError, ValidationError  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

from agui_client import DECLINE, Approval, Decision, Declined
from agui_client.interrupts import ELICITATION
from agui_container.cli.failure import CONTROLS, without_controls
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.screen import Screen

Schema = Mapping[str, object]

KEYS = {"y": "allow", "n": "deny", "e": "edit", "l": "later"}
ANSWER_KEYS = {"y": "answer", "n": "decline"}
"""For a question of an MCP server, which reads a refusal."""


async def decide(approval: Approval, asker: Asker, screen: Screen) -> Decision | None:
    """Ask for a decision about a call. None leaves the call waiting."""
    screen.note(approval.message + (f" {approval.reason}" if approval.reason else ""))
    show_json(approval.arguments, screen)
    while True:
        match await asker.key(f"Allow {without_controls(approval.tool_name)}?", KEYS):
            case "y":
                return approval.approve()
            case "n":
                return approval.deny((await asker.line("Reason for the model (Enter for none):")).strip() or None)
            case "l":
                return None
        try:
            edited: object = json.loads(await asker.line("Arguments:", in_one_line(approval.arguments or {})))
        except ValueError as error:
            screen.error(f"This is no JSON: {error}")
            continue
        if isinstance(edited, dict):
            return approval.edit(edited)
        screen.error("The arguments must be a JSON object.")


def in_one_line(value: object) -> str:
    """Return JSON text in which control characters are escaped."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def show_json(value: object, screen: Screen) -> None:
    screen.markdown(f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```")


# --- forms ------------------------------------------------------------------------------------------------------------


async def fill(interrupt: Interrupt, asker: Asker, screen: Screen) -> object:
    """Ask for the answer to an interrupt. Raises ``Declined`` if the person cancels it or ends the input."""
    screen.note(interrupt.message or interrupt.reason)
    schema = interrupt.response_schema or {"type": "string"}
    try:
        if await _is_declined(interrupt, asker, screen):
            if "action" in fields_of(schema):  # the server would take a refusal for the value of that field
                raise Declined
            return DECLINE
        Draft202012Validator.check_schema(schema)
        return await _valid_answer(schema, asker, screen)
    except (SchemaError, Unresolvable) as error:
        reason = error.message if isinstance(error, SchemaError) else error
        screen.error(f"The question cannot be answered, because its schema is invalid: {reason}")
        raise Declined from None
    except (EOFError, KeyboardInterrupt):
        raise Declined from None


async def _is_declined(interrupt: Interrupt, asker: Asker, screen: Screen) -> bool:
    """Show the link of a question, and wait until the person has followed it or wants to answer."""
    link = (interrupt.metadata or {}).get("url")
    if isinstance(link, str):
        screen.note(link)
    if interrupt.reason == ELICITATION:
        return await asker.key("Answer?", ANSWER_KEYS) == "n"
    if link:
        await asker.line("Press Enter once you have followed the link.")
    return False


async def _valid_answer(schema: Schema, asker: Asker, screen: Screen) -> object:
    """Ask until the answer is one that the whole schema allows."""
    show_json(fields_of(schema) or schema, screen)
    validator = Draft202012Validator(schema, registry=Registry())
    while True:
        answer = await _ask(schema, asker)
        try:
            validator.validate(answer)
        except ValidationError as error:
            screen.error(f"{'.'.join(map(str, error.path)) or 'The answer'}: {error.message}")
        else:
            return answer


def fields_of(schema: Schema) -> dict[str, Schema]:
    found = schema.get("properties")
    fields = found.items() if isinstance(found, Mapping) else ()
    return {name: field if isinstance(field, Mapping) else {} for name, field in fields}


async def _ask(schema: Schema, asker: Asker) -> object:
    """Ask for one value, or for the fields of an object. An empty line leaves a field as its default."""
    if "properties" not in schema:
        return value_of(await asker.line("Answer:"), schema)
    answers: dict[str, object] = {}
    for name, field in fields_of(schema).items():
        default = f" (Enter for {field['default']})" if "default" in field else ""
        text = await asker.line(f"{field.get('title') or name}{default}:")
        if text:
            answers[name] = value_of(text, {"$defs": schema.get("$defs", {}), **field})
        elif "default" in field:
            answers[name] = field["default"]
    return answers


def value_of(text: str, schema: Schema) -> object:
    """Return what a line means to a schema: its text, a value of YAML such as ``3`` or ``yes``, or a list."""
    validator = Draft202012Validator(schema, registry=Registry())
    return next(filter(validator.is_valid, readings_of(text)), text)


def readings_of(text: str) -> Iterator[object]:
    yield text
    for written in (text, f"[{text}]"):
        with suppress(yaml.YAMLError):
            yield yaml.safe_load(written)
