"""Commands that a client may send, from the models that validate them."""

import inspect
from typing import get_args

from pydantic import BaseModel

from agui_container.protocol.commands import Command
from website.json_schema import field_table, inlined
from website.tables import page

OPENING = (
    'A command is `{"command": {"type": …, …}}`: a body of `POST /invocations`, a frame of a\n'
    "[WebSocket](../websocket-binding.md#commands), or `forwardedProps.command` of a `RunAgentInput`.\n"
    "Unknown fields are ignored. [Commands](../http-api.md#commands) says how each transport answers."
)


def client_commands() -> str:
    """Return the page."""
    return page("Commands of clients", OPENING, *(section(kind) for kind in get_args(Command)))


def section(kind: type[BaseModel]) -> str:
    """Return the section of one command."""
    schema = inlined(kind.model_json_schema(by_alias=True))
    name = kind.model_fields["type"].default
    described = inspect.getdoc(kind) or ""
    return f"## {name}\n\n{described.replace('``', '`')}\n\n{field_table(schema, without=['type'])}"
