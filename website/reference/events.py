"""Events that the server sends: the models of ``ag_ui.core``."""

import inspect
from collections.abc import Iterator
from typing import get_args

from ag_ui.core import Event, EventType
from pydantic import BaseModel

from website.json_schema import Schema, field_table
from website.tables import page

OPENING = (
    "Events are the models of `ag_ui.core` in their JSON form. Every event may also have `timestamp`\n"
    "(milliseconds) and `metadata`, an object. A field without a value is left out and never null.\n"
    "[Custom events](../custom-events.md) are those that this server itself sends as CUSTOM."
)
COMMON = ("type", "timestamp", "rawEvent", "metadata")


def events() -> str:
    """Return the page."""
    return page("Events", OPENING, *sections())


def sections() -> Iterator[str]:
    """Iterate over the events in the order of AG-UI's own list."""
    union = get_args(Event)[0]
    kinds: dict[object, type[BaseModel]] = {kind.model_fields["type"].default: kind for kind in get_args(union)}
    for name in EventType:
        if kind := kinds.get(name):
            schema: Schema = kind.model_json_schema(by_alias=True)
            text = (inspect.getdoc(kind) or "").replace("\n", " ")
            fields = field_table(schema, "http.md", without=COMMON).replace(" or null", "")
            yield f"## {name.value}\n\n{text}\n\n{fields}"
