"""``agui chat``: talk to an agent in the terminal."""

import sys

import click

from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import session_option, token_option, ws_option
from agui_container.cli.signals import run_command
from agui_container.cli.target import open_target, place_of, retry_and_show, server_argument
from agui_container.cli.terminal.chat import Chat
from agui_container.cli.terminal.files import ServerFiles
from agui_container.cli.terminal.screen import Screen
from agui_container.cli.web_page import serve_page


@click.command()
@server_argument
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
    server: str,
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

    SERVER is an AG-UI server by its URL, an AgentCore runtime by its ARN, or MODULE:ATTRIBUTE, which is served
    meanwhile.
    """
    if web and (continues or thread_id):
        raise click.UsageError("--continue and --thread are for the terminal; the page lists all threads.")
    if not (web or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise CommandFailed(f"agui chat needs a terminal. For scripts: agui invoke {server} TEXT")
    screen, files = Screen(), ServerFiles(place_of(server))
    if continues and files.last.thread_id:
        thread_id, session_id = thread_id or files.last.thread_id, session_id or files.last.session_id

    async def run() -> None:
        retry, uses_ws = retry_and_show(screen.error), websocket and not web
        async with open_target(server, retry, websocket=uses_ws, token=token, session_id=session_id) as target:
            if web:
                await serve_page(target, web_port, opens=opens)
            else:
                await Chat(target, files, screen).run(thread_id)

    run_command(run())
