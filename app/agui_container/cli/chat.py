"""``agui chat``: talk to an agent in the terminal."""

import os
import sys

import click
from rich.console import Console

from agui_client import AgentClientError, Session
from agui_container.cli.failure import CommandFailed, error_text
from agui_container.cli.options import session_option, token_option, ws_option
from agui_container.cli.signals import run_command
from agui_container.cli.target import Target, open_target, place_of, retry_and_show, target_argument
from agui_container.cli.terminal.asker import Asker, PipeAsker, TerminalAsker
from agui_container.cli.terminal.chat import Chat
from agui_container.cli.terminal.chat_state import ChatState
from agui_container.cli.terminal.plain_view import PlainView
from agui_container.cli.terminal.screen import Screen
from agui_container.cli.terminal.server_files import ServerFiles
from agui_container.cli.terminal.slash_commands import SlashCompleter
from agui_container.cli.terminal.view import View
from agui_container.cli.web_page import serve_page


@click.command()
@target_argument
@click.option("--continue", "continues", is_flag=True, help="Continue the last conversation with this server.")
@click.option("--thread", "thread_id", metavar="ID", help="Continue this thread.")
@click.option("--web", is_flag=True, help="Show the chat page on this machine in place of the terminal.")
@click.option(
    "--web-port", type=click.IntRange(0, 65535), default=0, help="The port of that page.  [default: a free one]"
)
@click.option("--open/--no-open", "opens", default=True, help="Open that page in a browser.  [default: open]")
@ws_option
@token_option
@session_option
def chat(
    target: str,
    thread_id: str | None,
    token: str | None,
    session_id: str | None,
    *,
    continues: bool,
    websocket: bool,
    web: bool,
    web_port: int,
    opens: bool,
) -> None:
    """Talk to an agent.

    It is an AG-UI server by its URL, an AgentCore runtime by its ARN, or MODULE:ATTRIBUTE, which is served meanwhile.
    """
    if web and (continues or thread_id):
        raise click.UsageError("--continue and --thread are for the terminal; the page lists all threads.")
    files = ServerFiles(place_of(target))
    view: View = PlainView() if is_plain() else Screen(Console())
    if continues and (last := files.last):
        thread_id, session_id = thread_id or last.thread_id, session_id or last.session_id

    async def run() -> None:
        retry, uses_ws = retry_and_show(view.error), websocket and not web
        async with open_target(target, retry, websocket=uses_ws, token=token, session_id=session_id) as opened:
            if web:
                await serve_page(opened, web_port, opens=opens)
            else:
                await talk(opened, files, view, thread_id)

    run_command(run())


async def talk(target: Target, files: ServerFiles, view: View, thread_id: str | None) -> None:
    """Chat with a server. Raises ``CommandFailed`` if it cannot be reached."""
    completer = SlashCompleter()
    asker: Asker = (
        PipeAsker(sys.stdout if sys.stdin.isatty() else None)
        if isinstance(view, PlainView)
        else TerminalAsker(files.history, completer)
    )
    try:
        state = ChatState(target, files, view, Session(target.url, **target.options))
    except ValueError as error:
        raise CommandFailed(str(error)) from None
    completer.chat = state
    try:
        await state.load_capabilities()
        view.note(f"{state.agent_name}. /help lists the commands.")
        if thread_id is not None:
            await continue_thread(state, thread_id)
        await Chat(state, asker).run()
    except AgentClientError as error:
        raise CommandFailed(error_text(error)) from None
    finally:
        await state.session.aclose()


async def continue_thread(state: ChatState, thread_id: str) -> None:
    """Continue a thread if the server has it. Otherwise the chat begins a new one, and says so."""
    try:
        await state.open_thread(thread_id)
    except AgentClientError as error:
        state.view.error(f"The thread {thread_id} cannot be continued: {error_text(error)}")


def is_plain() -> bool:
    """Return True for a pipe, a dumb terminal and ``NO_COLOR``."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return not is_terminal or os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
