"""The command ``agui``: finds the module of a command and runs the command.

Rules:

- ``SUMMARIES`` names each command. ``agui NAME`` is the click command ``NAME`` of the module ``cli/NAME.py``, or of
  another one that ``MODULES`` names.
- The module is imported when its command is run, so no command pays for what another one imports.
- A command returns its exit status. None is 0.
- A package of the extra ``cli`` is imported at the top of the module that needs it. If it is missing, the user reads
  what to install.
"""

import os
from collections.abc import Sequence

import click
from click.exceptions import NoSuchCommand

from agui_container import __version__
from agui_container.cli.failure import needs_extra
from agui_container.imports import lazy_attributes

SUMMARIES = {
    "init": "Make a project with an agent, a tool and a test.",
    "dev": "Serve an agent while you write it.",
    "serve": "Serve an agent.",
    "doctor": "Check what an agent needs, and say what to do.",
    "config": "Print the settings and where they come from.",
    "chat": "Talk to an agent in the terminal.",
    "invoke": "Send one message to an agent, for scripts.",
    "threads": "List, show, export, rename and delete threads.",
    "runs": "List and cancel runs.",
    "feedback": "List feedback.",
    "deploy": "Deploy an agent to Amazon Bedrock AgentCore.",
    "platform": "Run or check a container behind a local AgentCore.",
}
"""Commands in the order of ``agui --help``."""

MODULES = dict.fromkeys(("threads", "runs", "feedback"), "cli.server_commands")
_load = lazy_attributes(__name__, {name: MODULES.get(name, f"cli.{name}") for name in SUMMARIES})


class CommandGroup(click.Group):
    """A group of commands that are imported when they are run."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command.

        Raises:
            NoSuchCommand: there is no such command. The message names similar ones.
            ClickException: a package of the extra is missing.
        """
        if cmd_name not in SUMMARIES:
            raise NoSuchCommand(cmd_name, possibilities=SUMMARIES, ctx=ctx)
        with needs_extra(cmd_name):
            command = _load(cmd_name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="agui-container %(version)s")
@click.pass_context
def agui(ctx: click.Context) -> None:
    """Run, inspect and operate AG-UI servers for Python agents."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


@agui.result_callback()
@click.pass_context
def exit_with(ctx: click.Context, status: int | None) -> None:
    """End the process with the status of the command."""
    ctx.exit(status or 0)


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit status. An invalid command line is explained, with status 2."""
    try:
        agui.main(list(arguments), prog_name="agui")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
