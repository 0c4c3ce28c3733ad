"""Approvals at the terminal: one key decides, and ``e`` opens the arguments in the person's editor."""

import asyncio
import json

import click

from agui_client import Approval, Decision
from agui_container.cli.control_characters import without_controls
from agui_container.cli.signals import ctrl_c_calls
from agui_container.cli.terminal.asker import Asker
from agui_container.cli.terminal.view import View

KEYS = {"y": "allow", "n": "deny", "e": "edit", "l": "later"}


async def decide(approval: Approval, asker: Asker, view: View) -> Decision | None:
    """Ask for a decision about a call. None leaves the call waiting."""
    view.note(approval.message + (f" {approval.reason}" if approval.reason else ""))
    view.markdown(f"```json\n{as_json(approval.arguments)}\n```")
    while True:
        match await asker.key(f"Allow {without_controls(approval.tool_name)}?", KEYS):
            case "y":
                return approval.approve()
            case "n":
                return approval.deny((await asker.line("Reason for the model (Enter for none):")).strip() or None)
            case "l":
                return None
        edited = await edit(approval.arguments or {}, view)
        if edited is not None:
            return approval.edit(edited)


async def edit(arguments: dict[str, object], view: View) -> dict[str, object] | None:
    """Open arguments in ``$EDITOR``, which gets Ctrl-C. Return None if they do not change, or the editor fails."""
    try:
        with ctrl_c_calls(lambda: None):
            text = await asyncio.to_thread(click.edit, as_json(arguments), extension=".json")
    except click.ClickException as error:
        view.error(error.format_message())
        return None
    except ValueError as error:  # a file that is no UTF-8
        view.error(f"The arguments cannot be read: {error}")
        return None
    if text is None:
        view.note("The arguments are as they were.")
        return None
    try:
        edited = json.loads(text)
    except ValueError as error:
        view.error(f"This is no JSON: {error}")
        return None
    if not isinstance(edited, dict):
        view.error("The arguments must be a JSON object.")
        return None
    return edited


def as_json(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)
