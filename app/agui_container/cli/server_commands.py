"""Commands of a running server, for the operations that users have: the other place besides the database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import click

from agui_client import AgentClientError, Session
from agui_container.cli.failure import CommandFailed
from agui_container.cli.target import open_target
from agui_container.cli.terminal.chat_state import error_text

url_option = click.option("--url", metavar="URL|ARN", help="Ask this server, in place of the database of AGUI_STORE.")


def run_with_server(url: str, token: str | None, work: Callable[[Session], Awaitable[None]]) -> None:
    """Run a command on a server. Raises ``CommandFailed`` if the server cannot be reached or refuses it."""

    async def run() -> None:
        async with open_target(url, token=token) as target, Session(target.url, **target.options) as session:
            await work(session)

    try:
        asyncio.run(run())
    except AgentClientError as error:
        raise CommandFailed(error_text(error)) from None
    except ValueError as error:
        raise CommandFailed(str(error)) from None


async def each_listed(session: Session, command: str, name: str) -> AsyncIterator[Mapping[str, object]]:
    """Yield what a command lists under a name, page by page."""
    page: dict[str, object] = {}
    while True:
        listed = await session.command(command, **page)
        rows = listed.get(name)
        for row in rows if isinstance(rows, list) else ():
            yield row
        if listed.get("next") is None:
            return
        page = {"page": listed["next"]}
