"""``agui threads``: list, show, export, rename and delete threads, of a server by its URL or in the database.

Rule: both places give the same views of threads, those of ``threads.list`` and ``threads.get``.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Protocol

import click
from ag_ui.core import Message
from pydantic import TypeAdapter

from agui_client import Session
from agui_client.rendering import markdown
from agui_container.cli.control_characters import without_controls
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import config_option, token_option, url_option
from agui_container.cli.server_commands import each_listed, run_with_server
from agui_container.cli.shared_stores import SharedStores, print_json, run_with_stores
from agui_container.engine.threads.views import shown_thread_view, thread_view
from agui_container.ports import EVERYBODY
from agui_container.ports.records import ThreadKey, ThreadRecord
from agui_container.ports.store import ThreadStore


class OwnedThreads(Protocol):
    """Threads of one owner."""

    def list(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield the threads without their messages, the last changed first."""
        ...

    async def get(self, thread_id: str) -> Mapping[str, object]:
        """Return a thread with its messages."""
        ...

    async def rename(self, thread_id: str, title: str | None) -> None:
        """Set the title of a thread. None removes it."""
        ...

    async def delete(self, thread_id: str) -> None:
        """Delete a thread."""
        ...


class ServerThreads:
    """Implements ``OwnedThreads`` by commands of a server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield the threads without their messages, the last changed first."""
        return each_listed(self._session, "threads.list", "threads")

    async def get(self, thread_id: str) -> Mapping[str, object]:
        """Return a thread with its messages."""
        return await self._session.command("threads.get", threadId=thread_id)

    async def rename(self, thread_id: str, title: str | None) -> None:
        """Set the title of a thread. None removes it."""
        await self._session.command("threads.rename", threadId=thread_id, title=title)

    async def delete(self, thread_id: str) -> None:
        """Delete a thread, and cancel its active run."""
        await self._session.command("threads.delete", threadId=thread_id)


class StoredThreads:
    """Implements ``OwnedThreads`` in the database. The server that runs a thread is not told of a change."""

    def __init__(self, threads: ThreadStore, owner: str) -> None:
        self._threads = threads
        self._owner = owner

    async def list(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield the threads without their messages, the last changed first."""
        page = None
        while True:
            records = await self._threads.list(self._owner, page=page)
            for record in records.items:
                yield thread_view(record)
            if (page := records.next) is None:
                return

    async def get(self, thread_id: str) -> Mapping[str, object]:
        """Return a thread with its messages."""
        delta = await self._threads.changes(ThreadKey(self._owner, thread_id))
        if delta is None:
            raise CommandFailed("there is no such thread")
        return shown_thread_view(delta, (), with_messages=True)

    async def rename(self, thread_id: str, title: str | None) -> None:
        """Set the title of a thread. None removes it."""
        if not await self._threads.rename(ThreadKey(self._owner, thread_id), title, time.time()):
            raise CommandFailed("there is no such thread")

    async def delete(self, thread_id: str) -> None:
        """Delete a thread. One with an active run stays, because its server would write it again."""
        record = await self._existing(thread_id)
        if record.active_run is not None:
            message = f"its run {record.active_run} is active: agui runs cancel {self._owner} {thread_id}"
            raise CommandFailed(f"{message} {record.active_run}")
        await self._threads.delete(record.key)

    async def _existing(self, thread_id: str) -> ThreadRecord:
        record = await self._threads.get(ThreadKey(self._owner, thread_id))
        if record is None:
            raise CommandFailed("there is no such thread")
        return record


class ThreadsLocation:
    """The place of the threads, as the options name it."""

    def __init__(self, url: str | None, token: str | None, owner: str, config: Path | None) -> None:
        self._url, self._token, self._owner, self._config = url, token, owner, config

    def run(self, work: Callable[[OwnedThreads], Awaitable[None]]) -> None:
        """Run a function on the threads. Raises ``CommandFailed``."""
        if self._url is not None:
            run_with_server(self._url, self._token, lambda session: work(ServerThreads(session)))
            return

        async def on_store(stores: SharedStores) -> None:
            await work(StoredThreads(stores.store.threads, self._owner))

        run_with_stores(self._config, on_store)


def with_location(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where the threads are, and pass that place to the command."""

    @wraps(command)
    def run(url: str | None, token: str | None, owner: str, config: Path | None, **arguments: object) -> None:
        command(ThreadsLocation(url, token, owner, config), **arguments)

    owner_option = click.option(
        "--owner", default=EVERYBODY, help="Owner of the threads in the database.", show_default=True
    )
    return url_option(token_option(owner_option(config_option(run))))


@click.group()
def threads() -> None:
    """List, show, export, rename and delete threads of a server, or in the database of AGUI_STORE."""


@threads.command("list")
@with_location
def list_command(location: ThreadsLocation) -> None:
    """List threads as JSON lines, the last changed first."""

    async def work(threads: OwnedThreads) -> None:
        async for thread in threads.list():
            print_json(thread)

    location.run(work)


@threads.command("show")
@click.argument("thread")
@with_location
def show_command(location: ThreadsLocation, thread: str) -> None:
    """Print a thread as Markdown."""

    async def work(threads: OwnedThreads) -> None:
        click.echo(without_controls(as_markdown(await threads.get(thread))))

    location.run(work)


@threads.command("export")
@click.argument("thread")
@click.argument("file", type=click.Path(path_type=Path))
@with_location
def export_command(location: ThreadsLocation, thread: str, file: Path) -> None:
    """Write a thread to FILE: as JSON if its name ends with .json, otherwise as Markdown."""

    async def work(threads: OwnedThreads) -> None:
        view = await threads.get(thread)
        text = json.dumps(view, indent=2, ensure_ascii=False) if file.suffix == ".json" else as_markdown(view)
        file.write_text(f"{text}\n", encoding="utf-8")  # noqa: ASYNC240 - nothing else runs meanwhile

    try:
        location.run(work)
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written: {error.strerror}") from None


@threads.command("rename")
@click.argument("thread")
@click.argument("title", required=False)
@with_location
def rename_command(location: ThreadsLocation, thread: str, title: str | None) -> None:
    """Give a thread a title. Without TITLE it has none."""
    location.run(lambda threads: threads.rename(thread, title))


@threads.command("delete")
@click.argument("thread")
@with_location
def delete_command(location: ThreadsLocation, thread: str) -> None:
    """Delete a thread and everything that belongs to it."""
    location.run(lambda threads: threads.delete(thread))


def as_markdown(view: Mapping[str, object]) -> str:
    """Return a thread as Markdown."""
    title, messages = view.get("title"), TypeAdapter(list[Message]).validate_python(view["messages"])
    heading = f"# {title}\n\n" if title else ""
    return f"{heading}{markdown(messages)}"
