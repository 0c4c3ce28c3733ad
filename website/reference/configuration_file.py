"""Tables of ``agui.toml``, from the JSON Schema that the package ships."""

import json
from importlib.resources import files

from website.json_schema import Schema, default_text, field_table, member, type_text
from website.tables import code, page, table

OPENING = (
    "Made from `agui.schema.json`, which `agui config --schema` prints. [Settings](../configuration.md) has the same\n"
    "settings as environment variables, and says how the file is found."
)


def configuration_file() -> str:
    """Return the page."""
    schema: Schema = json.loads(files("agui_container").joinpath("agui.schema.json").read_text(encoding="utf-8"))
    rows = [
        [code(name), type_text(field), default_text(field), str(field["description"])]
        for name, field in member(schema, "properties").items()
        if isinstance(field, dict)
    ]
    tables = [
        f"### {name}\n\n{field_table(definition)}"
        for name, definition in member(schema, "$defs").items()
        if isinstance(definition, dict) and "properties" in definition
    ]
    values = [
        f"### {name}\n\nOne of {type_text(definition)}."
        for name, definition in member(schema, "$defs").items()
        if isinstance(definition, dict) and "enum" in definition
    ]
    settings = table(["setting", "type", "default", "meaning"], rows)
    return page("agui.toml", OPENING, "## Settings", settings, "## Tables and values", *tables, *values)
