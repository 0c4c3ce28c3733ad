"""``agui dev``: serve an agent, open the chat page, and restart when a file of the project changes.

Rules:

- The socket belongs to this process, which only watches. The server is a child process that is started again after a
  change, so the port stays the same, and a request of a page waits for the new server.
- A server that could not start is started again after the next change. Meanwhile the page shows why.
- Threads are in the database of the project, unless a setting names a store, so they survive a restart.
- Without a setting, only programs of this machine can connect.
- Clients and the chat page get tracebacks of the agent. A run that a restart ends says which files have changed.
"""

import ctypes
import multiprocessing
import socket
import sys
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import click
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.supervisors.watchfilesreload import WatchFilesReload

from agui_container import logging as logs
from agui_container.cli.failure import CommandFailed
from agui_container.cli.local_server import listen, local_app, local_server, refusal
from agui_container.cli.options import agent_argument, config_option, host_option, port_option
from agui_container.cli.project import load_error_text, project_store, with_traceback
from agui_container.cli.serve import make_current_folder_importable
from agui_container.protocol.errors import ERRORS, AppError, ErrorCode
from agui_container.server.run import page_host, run_server
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import CONFIG_FILE, load_with_origins

NOT_WATCHED = {"__pycache__", "node_modules", "site-packages", "venv"}
"""Folders of tools, beside those whose names begin with a dot."""

REFRESH = {"Refresh": "2"}
"""Lets a browser ask again, until the agent can be loaded."""

CHANGED_BYTES = 1_000
"""Bytes of the names of changed files that a server can read."""


@click.command()
@agent_argument
@host_option
@port_option
@config_option
@click.option("--open/--no-open", "opens", default=True, help="Open the chat page in a browser.  [default: open]")
def dev(agent: str | None, host: str | None, port: int | None, config: Path | None, *, opens: bool) -> int:
    """Serve the agent MODULE:ATTRIBUTE, and restart when a file of the project changes.

    Without an argument, the setting `agent` names the agent. Threads are kept over a restart, in .agui/dev.db unless
    the setting `store` names another place.
    """
    make_current_folder_importable()
    try:
        settings, origins = load_with_origins(config)
    except SettingsError as error:
        raise CommandFailed(f"cannot start: {error}") from None
    address = host or ("127.0.0.1" if origins["host"] == "default" else settings.host)
    store = project_store(origins)
    listener = listen(address, settings.port if port is None else port)
    logs.configure_logging(settings.log_format, settings.log_level)
    describe(agent or settings.agent, page_of(listener), store or place_of_threads(settings, origins["store"]))
    if opens and settings.console:
        webbrowser.open(page_of(listener))
    changed: Changed = multiprocessing.get_context("spawn").RawArray(ctypes.c_char, CHANGED_BYTES)
    target = partial(serve_child, agent, config, host=address, store=store, changed=changed)
    watch(Reloader(reload_config(config, settings), target, [listener], changed))
    return 0


class Changed(Protocol):
    """Memory that the watching process shares with the server: names of the files for which it restarts, or nothing."""

    value: bytes


class Reloader(WatchFilesReload):
    """uvicorn's reloader, which lets the server that it ends read the names of the changed files in ``changed``."""

    def __init__(
        self,
        config: uvicorn.Config,
        target: Callable[[list[socket.socket] | None], None],
        sockets: list[socket.socket],
        changed: Changed,
    ) -> None:
        super().__init__(config, target, sockets)
        self._changed = changed

    def should_restart(self) -> list[Path] | None:
        paths = super().should_restart()
        names = ", ".join(sorted(path.name for path in paths or ()))
        self._changed.value = names.encode(errors="replace")[:CHANGED_BYTES]
        return paths

    def restart(self) -> None:
        super().restart()
        self._changed.value = b""


def watch(reloader: Reloader) -> None:
    """Serve and restart until SIGTERM or SIGINT. Raises ``CommandFailed`` if the system cannot watch the files."""
    try:
        reloader.run()
    except OSError as error:  # usually the limit of inotify
        reloader.shutdown()
        advice = "WATCHFILES_FORCE_POLLING=true compares the files instead."
        raise CommandFailed(f"cannot watch the files of this folder: {error}. {advice}") from None


def page_of(listener: socket.socket) -> str:
    """Return the URL of the chat page for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://{page_host(host)}:{port}/"


def describe(agent: str, page: str, threads: str) -> None:
    """Print the agent and the places to look at."""
    for name, value in {"agent": agent, "page": page, "threads": threads, "stop": "Ctrl-C"}.items():
        click.echo(f"{click.style(f'{name:>9}', dim=True)}  {click.style(value, fg='cyan')}", err=True)


def place_of_threads(settings: Settings, origin: str) -> str:
    """Return the place that the setting ``store`` names. Its URL may have a password, so it is not printed."""
    place = f"the setting store ({origin})"
    is_memory = settings.store.get_secret_value() == "memory"
    return f"{place}: memory, so a restart after a change loses them" if is_memory else place


def serve_child(
    agent: str | None,
    config: Path | None,
    *,
    host: str,
    store: str | None,
    changed: Changed,
    sockets: list[socket.socket],
) -> None:
    """Serve in a child process until the next change."""
    status = run_server(
        agent,
        config=config,
        sockets=sockets,
        on_load_error=partial(show_load_error, sockets=sockets),
        describe_failure=partial(describe_dev_failure, changed),
        host=host,
        store=store,
    )
    sys.exit(status)


def describe_dev_failure(changed: Changed, error: BaseException) -> AppError:
    """Return what clients read of an exception of the agent, with its traceback, or of a restart."""
    described = with_traceback(error)
    if described.code is ErrorCode.SHUTTING_DOWN and changed.value:
        return AppError(described.code, f"restarted: {changed.value.decode(errors='replace')} changed")
    return described


def show_load_error(error: Exception, *, sockets: list[socket.socket]) -> None:
    """Answer every request with the error until SIGTERM: a browser by a page, a client by RUN_ERROR."""
    text, status = load_error_text(error), ERRORS[ErrorCode.INTERNAL_ERROR].http

    async def answer(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return PlainTextResponse(text, status, REFRESH)
        return refusal(ErrorCode.AGENT_ERROR, text, status)

    local_server(local_app([Route("/{path:path}", answer, methods=["GET", "POST"])])).run(sockets)


def reload_config(config: Path | None, settings: Settings) -> uvicorn.Config:
    """Return uvicorn's configuration of files to watch: Python files, and the text files that settings name."""
    folder = Path.cwd()
    text_files = (config or CONFIG_FILE, *map(Path, settings.context_files))
    return uvicorn.Config(
        "agui_container",
        log_config=None,
        reload=True,
        reload_dirs=[str(folder)],
        reload_includes=["SKILL.md", *(file.name for file in text_files)],
        reload_excludes=[str(each) for each in folder.iterdir() if each.is_dir() and is_of_tools(each)],
    )


def is_of_tools(folder: Path) -> bool:
    """Return True for a folder that tools write, such as a virtual environment."""
    name = folder.name
    return name.startswith(".") or name in NOT_WATCHED or folder.joinpath("pyvenv.cfg").exists()
