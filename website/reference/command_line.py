"""The command ``agui``, as its own help describes it."""

from collections.abc import Iterator

import click

from agui_container.cli.command_line import agui
from website.tables import page

OPENING = "Made from the help of the commands: `agui NAME --help` prints the same."


def command_line() -> str:
    """Return the page."""
    return page("The command agui", OPENING, *sections(agui, None, "agui"))


def sections(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    """Iterate over the sections of a command and its subcommands."""
    context = click.Context(command, parent=parent, info_name=name.rpartition(" ")[2], max_content_width=100)
    yield f"## {name}\n\n```text\n{command.get_help(context).strip()}\n```"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            if found := command.get_command(context, child):
                yield from sections(found, context, f"{name} {child}")
