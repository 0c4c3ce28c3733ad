"""``agui dev``: serve an agent, open the chat page, and restart when a file of the project changes.

Rules:

- The socket belongs to this process, which only watches. The server is a child process that is started again after a
  change, so the port stays the same, and a request of a page waits for the new server.
- A server that could not start is started again after the next change. Meanwhile the page shows why.
- Threads are in the database of the project, unless a setting names a store, so they survive a restart.
- Without a setting, only programs of this machine can connect.
- Clients and the chat page get tracebacks of the agent. Runs that a restart ends name the files that changed.
"""

import ctypes
import multiprocessing
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.context import SpawnProcess
from multiprocessing.sharedctypes import SynchronizedString
from pathlib import Path

import click
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from watchfiles import PythonFilter, watch

from agui_container import logging as logs
from agui_container.cli.failure import CommandFailed
from agui_container.cli.local_server import listen, local_app, local_server, refusal
from agui_container.cli.options import agent_argument, config_option, host_option, port_option
from agui_container.cli.project import load_error_text, project_store, with_traceback
from agui_container.cli.serve import make_current_folder_importable
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.server.run import page_host, run_server
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import CONFIG_FILE, load_with_origins

REFRESH = {"Refresh": "2"}
"""Lets a browser ask again, until the agent can be loaded."""

CHANGED_BYTES = 1_000
"""Size of the names of changed files, in memory that this process and the server share. More of them are cut off."""


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
    serve = partial(serve_child, agent, config, host=address, store=store, sockets=[listener])
    serve_and_restart(serve, watched(config, settings))
    return 0


def serve_and_restart(serve: Callable[..., None], files: PythonFilter) -> None:
    """Serve until SIGTERM or SIGINT, and start again after changes. Raises ``CommandFailed`` if nothing can watch."""
    spawn, stopped = multiprocessing.get_context("spawn"), threading.Event()
    changed = spawn.Array(ctypes.c_char, CHANGED_BYTES)
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())

    def start() -> SpawnProcess:
        changed.value = b""
        process = spawn.Process(target=serve, kwargs={"changed": changed})
        process.start()
        return process

    process = start()
    try:
        for changes in watch(Path.cwd(), watch_filter=files, stop_event=stopped, raise_interrupt=False):
            changed.value = names_of(path for _, path in changes)
            end(process)
            process = start()
    except OSError as error:  # usually the limit of inotify
        advice = "WATCHFILES_FORCE_POLLING=true compares the files instead."
        raise CommandFailed(f"cannot watch the files of this folder: {error}. {advice}") from None
    finally:
        end(process)


def names_of(paths: Iterable[str]) -> bytes:
    return ", ".join(sorted({Path(path).name for path in paths})).encode(errors="replace")[:CHANGED_BYTES]


def end(process: SpawnProcess) -> None:
    process.terminate()
    process.join()


def watched(config: Path | None, settings: Settings) -> PythonFilter:
    """Return the filter of files: Python files, skills, and the text files that settings name."""
    environments = [each.parent for each in Path.cwd().glob("*/pyvenv.cfg")]
    names = ["SKILL.md", (config or CONFIG_FILE).name, *(Path(file).name for file in settings.context_files)]
    return PythonFilter(ignore_paths=environments, extra_extensions=names)


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
    changed: SynchronizedString,
    sockets: list[socket.socket],
) -> None:
    """Serve in a child process until the next change."""
    status = run_server(
        agent,
        config=config,
        sockets=sockets,
        on_start_error=partial(show_start_error, sockets=sockets),
        describe_failure=partial(describe_dev_failure, changed),
        host=host,
        store=store,
    )
    sys.exit(status)


def describe_dev_failure(changed: SynchronizedString, error: BaseException) -> AppError:
    """Return what clients read of an exception of the agent, with its traceback, or of a restart."""
    described, names = with_traceback(error), changed.value.decode(errors="replace")
    if described.code is ErrorCode.SHUTTING_DOWN and names:
        return AppError(described.code, f"restarted: {names} changed")
    return described


def show_start_error(error: Exception, *, sockets: list[socket.socket]) -> None:
    """Answer every request with the error until SIGTERM: a browser by a page, a client by RUN_ERROR."""
    click.echo("waiting for a change of a file, to start again", err=True)
    text, status = load_error_text(error), ErrorCode.INTERNAL_ERROR.http

    async def answer(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return PlainTextResponse(text, status, REFRESH)
        return refusal(ErrorCode.AGENT_ERROR, text, status)

    local_server(local_app([Route("/{path:path}", answer, methods=["GET", "POST"])])).run(sockets)
