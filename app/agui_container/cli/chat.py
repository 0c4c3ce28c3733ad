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


@click.command()
@target_argument
@click.option("--continue", "continues", is_flag=True, help="Continue the last conversation with this server.")
@click.option("--thread", "thread_id", metavar="ID", help="Continue this thread.")
@ws_option
@token_option
@session_option
def chat(
    target: str, thread_id: str | None, token: str | None, session_id: str | None, *, continues: bool, websocket: bool
) -> None:
    """Talk to an agent.

    It is an AG-UI server by its URL, an AgentCore runtime by its ARN, or MODULE:ATTRIBUTE, which is served meanwhile.
    """
    files = ServerFiles(place_of(target))
    view: View = PlainView() if is_plain() else Screen(Console())
    if continues and (last := files.last):
        thread_id, session_id = thread_id or last.thread_id, session_id or last.session_id

    async def run() -> None:
        retry = retry_and_show(view.error)
        async with open_target(target, retry, websocket=websocket, token=token, session_id=session_id) as opened:
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
