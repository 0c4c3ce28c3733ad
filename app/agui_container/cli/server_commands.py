"""``agui threads``, ``agui runs`` and ``agui feedback``: what a server keeps for the caller.

Rules:

- The caller is whom the token names. A server without tokens has one caller.
- Lists are JSON lines. An error is one line on the standard error, with exit status 2.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from pathlib import Path

import click

from agui_client import Session
from agui_container.cli.failure import without_controls
from agui_container.cli.signals import run_command
from agui_container.cli.target import AT_ONCE, ServerOptions, server_options
from agui_core.rendering import markdown


@click.group()
def threads() -> None:
    """List, show, export, rename and delete threads of a server."""


@click.group()
def runs() -> None:
    """List and cancel runs of a server."""


@click.group()
def feedback() -> None:
    """List feedback of a server."""


def on_server(work: Callable[..., Awaitable[None]]) -> Callable[..., int | None]:
    """Add what names a server, and call a function with a session of the server, of ``thread`` if any."""

    @wraps(work)
    def run(server: ServerOptions, thread: str | None = None, **arguments: object) -> None:
        async def connected() -> None:
            async with server.open(AT_ONCE) as target, target.session(thread) as session:
                await work(session, **arguments)

        run_command(connected())

    return click.argument("server")(server_options(run))


@threads.command("list")
@on_server
async def list_threads(session: Session) -> None:
    """List threads as JSON lines, the last changed first."""
    async for thread in each_listed(session, "threads.list", "threads"):
        print_json(thread)


@threads.command("show")
@on_server
@click.argument("thread")
async def show_thread(session: Session) -> None:
    """Print a thread as Markdown."""
    click.echo(without_controls(as_markdown(await session.refresh())))


@threads.command("export")
@on_server
@click.argument("thread")
@click.argument("file", type=click.Path(path_type=Path))
async def export_thread(session: Session, file: Path) -> None:
    """Write a thread to FILE: as JSON if its name ends with .json, otherwise as Markdown."""
    export(await session.refresh(), file)


def export(session: Session, file: Path) -> None:
    messages = [it.model_dump(mode="json", by_alias=True, exclude_none=True) for it in session.messages]
    fields = {"threadId": session.thread_id, "title": session.title, "messages": messages, "state": session.state}
    is_json = file.suffix == ".json"
    text = json.dumps(fields, indent=2, ensure_ascii=False) if is_json else as_markdown(session)
    file.write_text(f"{text}\n", encoding="utf-8")


def as_markdown(session: Session) -> str:
    heading = f"# {session.title}\n\n" if session.title else ""
    return f"{heading}{markdown(session.messages)}"


@threads.command("rename")
@on_server
@click.argument("thread")
@click.argument("title", required=False)
async def rename_thread(session: Session, title: str | None) -> None:
    """Give a thread a title. Without TITLE it has none."""
    await session.rename(title)


@threads.command("delete")
@on_server
@click.argument("thread")
async def delete_thread(session: Session) -> None:
    """Delete a thread and everything that belongs to it, and cancel its active run."""
    await session.delete()


@runs.command("list")
@on_server
@click.option("--all", "include_ended", is_flag=True, help="Include ended runs.")
async def list_runs(session: Session, *, include_ended: bool) -> None:
    """List open runs of the caller as JSON lines, newest first."""
    async for run in each_listed(session, "runs.list", "runs"):
        if include_ended or "endedAt" not in run:
            print_json(run)


@runs.command("cancel")
@on_server
@click.argument("thread")
@click.argument("run")
async def cancel_run(session: Session, run: str) -> None:
    """Cancel a run. Its THREAD and RUN are those of the list."""
    print_json(await session.command("cancel", threadId=session.thread_id, runId=run))


@feedback.command("list")
@on_server
async def list_feedback(session: Session) -> None:
    """List all feedback of the caller as JSON lines, thread by thread."""
    async for thread in each_listed(session, "threads.list", "threads"):
        view = await session.command("threads.get", threadId=thread["threadId"], messages=False)
        given = view.get("feedback")
        for each in given if isinstance(given, list) else ():
            print_json({"threadId": thread["threadId"], **each})


async def each_listed(session: Session, command: str, name: str) -> AsyncIterator[Mapping[str, object]]:
    """Yield the rows that a command lists under a name, page by page."""
    page: dict[str, object] = {}
    while True:
        listed = await session.command(command, **page)
        rows = listed.get(name)
        for row in rows if isinstance(rows, list) else ():
            yield row
        if listed.get("next") is None:
            return
        page = {"page": listed["next"]}


def print_json(facts: Mapping[str, object]) -> None:
    """Print one line of JSON without the values that are None."""
    click.echo(json.dumps({name: value for name, value in facts.items() if value is not None}))
