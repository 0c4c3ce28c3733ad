"""``agui invoke``: send one message to an agent and print its answer, for scripts.

Rule: the standard output has the answer and nothing else, or with ``--json`` one event on each line. Everything about
the run goes to the standard error. The exit status says how the run ended.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import IO, TextIO

import click
from ag_ui.core import BaseEvent, RawEvent, TextMessageContentEvent, TextMessageEndEvent, ToolCallResultEvent

from agui_client import (
    AgentClientError,
    Approval,
    ConnectionLostError,
    CredentialsError,
    Decision,
    Outcome,
    RunFailedError,
    RunRefusedError,
    Session,
    ToolCallEvent,
    UnsupportedError,
    user_message,
)
from agui_container.cli.failure import error_text, without_controls
from agui_container.cli.signals import ctrl_c_calls, run_command
from agui_container.cli.target import ServerOptions, retry_and_show, server_options
from agui_core.content import text_of


class ExitStatus(IntEnum):
    """Ends of a run. 2 is click's own, for a wrong command line."""

    SUCCESS = 0
    FAILED = 1
    REFUSED = 3
    INTERRUPTED = 4
    CANCELLED = 130


EXIT_STATUSES = """\b
Exit status:
  0    the run ended with success
  1    the run failed
  2    the command line is wrong, or the agent cannot be served
  3    the server refused the run, or cannot be reached
  4    the run waits for an approval or an answer
  130  the run was cancelled, for example by Ctrl-C"""


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=EXIT_STATUSES)
@click.argument("server")
@click.argument("text", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
@click.option("--thread", "thread_id", metavar="ID", help="Continue this thread, or begin it.")
@click.option("--state", "state", metavar="FILE", type=click.File(), help="Send the JSON in FILE as the shared state.")
@click.option(
    "--file", "files", type=EXISTING_FILE, metavar="PATH", multiple=True, help="Send a file. May be repeated."
)
@click.option(
    "--approve",
    type=click.Choice(["all", "none"]),
    help="Allow calls that wait for an approval, or deny them. Otherwise the run ends as interrupted.",
)
@server_options
def invoke(
    server: ServerOptions,
    text: str | None,
    thread_id: str | None,
    state: IO[str] | None,
    files: tuple[Path, ...],
    approve: str | None,
    *,
    as_json: bool,
) -> int:
    """Send TEXT to the agent of SERVER, a URL, an ARN or MODULE:ATTRIBUTE, and print its answer.

    The text is read from the standard input if that is no terminal. With TEXT, the input follows it.
    """
    shared_state = None if state is None else read_json(state)

    async def run() -> int:
        message = user_message(whole_text(text), files)
        async with server.open(retry_and_show(partial(click.echo, err=True))) as target:
            if shared_state is not None:
                target.options["state"] = shared_state
            async with target.session(thread_id) as session:
                session.send(message)
                return await answer(session, partial(print_json if as_json else print_text, output), approve)

    output = sys.stdout
    with redirect_stdout(sys.stderr):  # an agent that this command serves may print
        return run_command(run())


def read_json(file: IO[str]) -> object:
    try:
        return json.load(file)
    except ValueError as error:
        raise click.BadParameter(f"'{file.name}' is not JSON: {error}", param_hint="--state") from error


async def answer(session: Session, show: Callable[[BaseEvent], None], approve: str | None) -> int:
    """Run a session until it is the user's turn, and return the exit status. Ctrl-C cancels the run."""
    cancels: list[asyncio.Task[None]] = []
    try:
        with ctrl_c_calls(lambda: cancels.append(asyncio.create_task(session.cancel()))):
            await session.run(on_event=show, on_approval=partial(decide, how=approve))
    except AgentClientError as error:
        click.echo(error_text(error), err=True)
        if isinstance(error, RunRefusedError | ConnectionLostError | CredentialsError | UnsupportedError):
            return ExitStatus.REFUSED
        return ExitStatus.CANCELLED if cancels and not isinstance(error, RunFailedError) else ExitStatus.FAILED
    finally:
        await asyncio.gather(*cancels, return_exceptions=True)
    return status_of(session)


def status_of(session: Session) -> int:
    """Return the exit status of a session whose run has ended."""
    if session.outcome is Outcome.CANCELLED:
        return ExitStatus.CANCELLED
    for interrupt in session.interrupts:
        click.echo(f"waits: {without_controls(interrupt.message or interrupt.reason)}", err=True)
    for call in session.pending_calls:
        click.echo(f"waits for a result of: {without_controls(call.function.name)}", err=True)
    return ExitStatus.INTERRUPTED if session.interrupts or session.pending_calls else ExitStatus.SUCCESS


def decide(approval: Approval, how: str | None) -> Decision | None:
    """Decide about a call as ``--approve`` says. None leaves it waiting."""
    return {"all": approval.approve(), "none": approval.deny()}.get(how or "")


def print_text(output: TextIO, event: BaseEvent) -> None:
    """Print the agent's text, and its tool calls on the standard error.

    The text of subagents is not part of the answer.
    """
    match event:
        case TextMessageContentEvent(subagent_run_id=None):
            write(output, event.delta)
        case TextMessageEndEvent(subagent_run_id=None):
            write(output, "\n")
        case ToolCallEvent():
            click.echo(without_controls(f"calls {event.name} {json.dumps(event.input)}"), err=True)
        case ToolCallResultEvent():
            click.echo(without_controls(f"result: {text_of(event.content)}"), err=True)


def print_json(output: TextIO, event: BaseEvent) -> None:
    """Print an event as one line of JSON. An event of an unknown type is printed as the server sent it."""
    if isinstance(event, RawEvent) and event.source is None:
        sent = event.event
    else:
        sent = event.model_dump(mode="json", by_alias=True, exclude_none=True)
    write(output, json.dumps(sent, ensure_ascii=False) + "\n")


def write(output: TextIO, text: str) -> None:
    """Write text at once: as it is for a program, without control characters for a terminal."""
    click.echo(without_controls(text) if output.isatty() else text, file=output, nl=False)


def whole_text(text: str | None) -> str:
    """Return the text of the command line and of the standard input. Raises ``UsageError`` if there is none."""
    read = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    whole = "\n\n".join(filter(None, [text, read]))
    if not whole:
        raise click.UsageError("give a text, or write it to the standard input")
    return whole
