"""The hook of the site: a Markdown extension that adds what is generated from the code.

    <!-- generated: errors -->

in front of a table of codes gives it the columns of the code's own table. ``tables`` stands for the tables of
``agui.toml``, and ``commands`` for the help of each command. Marks of code blocks, which only the tests read, go.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import click
from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.preprocessors import Preprocessor  # type: ignore[import-untyped]

from agui_container.cli.command_line import agui
from agui_container.protocol.errors import ErrorCode

FENCE = re.compile(r"^(\s*```\w+)(?: (.*))?$")
FILE = re.compile(r"file=(\S+)")
MARK = re.compile(r"^<!-- generated: (\w+) -->$")
ERRORS_MARK = "errors"
FIRST = 100
"""Priority before all other preprocessors, which read code blocks and HTML."""

Schema = Mapping[str, Any]
"""One JSON schema."""


def error_rows(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table of codes with what each code is on the other transports."""
    for line in lines:
        code, *cells = line.strip("| ").split(" | ")
        if code == "code":
            added = ["WebSocket close", "gRPC", "retryable"]
        elif code.startswith("`"):
            spec = ErrorCode(code.strip("`"))  # type: ignore[call-arg] # as in AppError
            added = [str(spec.ws_close), f"`{spec.grpc}`", "yes" if spec.is_retryable else "no"]
        else:
            yield "|---" * 6 + "|"
            continue
        status, when = cells[0], " | ".join(cells[1:])
        yield f"| {' | '.join([code, status, *added, when])} |"


def section(schema: Schema, name: str) -> Schema:
    """Return the object of this name in a schema; empty if there is none."""
    found = schema.get(name)
    return found if isinstance(found, dict) else {}


def type_of(schema: Schema) -> str:
    """Return the type of a value in words."""
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rpartition("/")[2]
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return " or ".join(f"`{json.dumps(value)}`" for value in values)
    options = schema.get("anyOf")
    if isinstance(options, list):
        return " or ".join(dict.fromkeys(type_of(option) for option in options))
    if schema.get("type") == "array":
        return f"list of {type_of(section(schema, 'items'))}"
    return str(schema.get("type", "any value"))


def settings_tables() -> Iterator[str]:
    """Yield the tables of ``agui.toml``, from the JSON Schema that the package ships."""
    schema = json.loads(files("agui_container").joinpath("agui.schema.json").read_text(encoding="utf-8"))
    for name, definition in section(schema, "$defs").items():
        fields = section(definition, "properties")
        if not fields:
            continue
        required = definition.get("required", [])
        yield from ["", f"### {name}", "", "| field | type | default |", "|---|---|---|"]
        for key, field in fields.items():
            default = "required" if key in required else json.dumps(field.get("default"))
            yield f"| `{key}` | {type_of(field)} | {default} |"


def command_help() -> Iterator[str]:
    """Yield the help of ``agui`` and of each of its commands."""
    return helped(agui, None, "agui")


def helped(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    """Yield the help of a command and of those below it."""
    context = click.Context(command, parent=parent, info_name=name.rpartition(" ")[2], max_content_width=100)
    yield from ["", f"## {name}", "", "```text", *command.get_help(context).strip().splitlines(), "```"]
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            if found := command.get_command(context, child):
                yield from helped(found, context, f"{name} {child}")


GENERATED: Mapping[str, Callable[[], Iterator[str]]] = {"tables": settings_tables, "commands": command_help}


class SitePreprocessor(Preprocessor):  # type: ignore[misc]
    """Turn a document of the repository into a page of the site."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines of the page."""
        return list(page(lines))


def page(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a page."""
    in_code, table = False, list[str]()
    awaits_table = False
    for line in lines:
        if awaits_table and (line.startswith("|") or table):
            if line.startswith("|"):
                table.append(line)
                continue
            yield from error_rows(table)
            awaits_table, table = False, []
        mark = MARK.match(line)
        if mark and not in_code:
            awaits_table = mark[1] == ERRORS_MARK
            yield from GENERATED.get(mark[1], lambda: iter(()))()
        elif fence := FENCE.match(line):
            in_code, file = True, FILE.search(fence[2] or "")
            yield f'{fence[1]} title="{file[1]}"' if file else fence[1]
        elif line.strip() == "```":
            in_code = not in_code
            yield line
        else:
            yield line


class SiteExtension(Extension):  # type: ignore[misc]
    """The extension that ``mkdocs.yml`` names."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name that Markdown calls
        """Register the preprocessor."""
        md.preprocessors.register(SitePreprocessor(md), "site", FIRST)


def makeExtension(**_: object) -> SiteExtension:  # noqa: N802 - the name that Markdown calls
    """Return the extension."""
    return SiteExtension()
