"""``agui chat``: talk to an agent in the terminal."""

import sys

import click
from msgspec.structs import replace

from agui_container.cli.failure import CommandFailed
from agui_container.cli.signals import run_command
from agui_container.cli.target import LOCAL_SERVER, ServerOptions, retry_and_show, server_options
from agui_container.cli.terminal.chat import Chat
from agui_container.cli.terminal.files import ServerFiles
from agui_container.cli.terminal.screen import Screen
from agui_container.cli.web_page import serve_page


@click.command()
@click.argument("server", default=LOCAL_SERVER)
@click.option("--continue", "continues", is_flag=True, help="Continue the last conversation with this server.")
@click.option("--thread", "thread_id", metavar="ID", help="Continue this thread.")
@click.option("--web", is_flag=True, help="Show the chat page on this machine in place of the terminal.")
@click.option(
    "--web-port", type=click.IntRange(0, 65535), default=0, help="The port of that page.  [default: a free one]"
)
@click.option("--open/--no-open", "opens", default=True, help="Open that page in a browser.  [default: open]")
@server_options
def chat(
    server: ServerOptions, thread_id: str | None, *, continues: bool, web: bool, web_port: int, opens: bool
) -> None:
    """Talk to an agent.

    SERVER is an AG-UI server by its URL, an AgentCore runtime by its ARN, or MODULE:ATTRIBUTE, which is served
    meanwhile.
    """
    if web and (continues or thread_id):
        raise click.UsageError("--continue and --thread are for the terminal; the page lists all threads.")
    if not (web or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise CommandFailed(f"agui chat needs a terminal. For scripts: agui invoke {server.name} TEXT")
    screen = Screen()
    work = (
        show_page(server, screen, web_port, opens=opens)
        if web
        else talk(server, screen, thread_id, continues=continues)
    )
    run_command(work)


async def show_page(server: ServerOptions, screen: Screen, port: int, *, opens: bool) -> None:
    async with replace(server, websocket=False).open(retry_and_show(screen.error)) as target:
        await serve_page(target, port, opens=opens)


async def talk(server: ServerOptions, screen: Screen, thread_id: str | None, *, continues: bool) -> None:
    files = ServerFiles(server.place)
    if continues:
        thread_id = thread_id or files.last.thread_id
        server = replace(server, session_id=server.session_id or files.last.session_id)
    async with server.open(retry_and_show(screen.error)) as target:
        await Chat(target, files, screen).run(thread_id)
