"""Commands of a running server, for the operations that users have: the other place besides the database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from agui_client import AgentClientError, Session
from agui_container.cli.failure import CommandFailed, error_text
from agui_container.cli.shared_stores import print_json
from agui_container.cli.target import AT_ONCE, open_target


def run_with_server(url: str, token: str | None, work: Callable[[Session], Awaitable[None]]) -> None:
    """Run a command on a server. Raises ``CommandFailed`` if the server cannot be reached or refuses it."""

    async def run() -> None:
        async with open_target(url, AT_ONCE, token=token) as target, Session(target.url, **target.options) as session:
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


async def print_runs_of(session: Session, *, include_ended: bool) -> None:
    """Print the runs that a server lists for its caller."""
    async for run in each_listed(session, "runs.list", "runs"):
        if include_ended or "endedAt" not in run:
            print_json(run)


async def cancel_run_of(session: Session, thread_id: str, run_id: str) -> None:
    """Cancel a run of a server. Raises ``AgentClientError``."""
    print_json(await session.command("cancel", threadId=thread_id, runId=run_id))


async def print_feedback_of(session: Session) -> None:
    """Print the feedback that the caller of a server has given."""
    async for thread in each_listed(session, "threads.list", "threads"):
        view = await session.command("threads.get", threadId=thread["threadId"], messages=False)
        given = view.get("feedback")
        for each in given if isinstance(given, list) else ():
            print_json({"threadId": thread["threadId"], **each})
