"""Run uvicorn with the application, from the start of the process to its end.

Rule: SIGTERM drains first. Open runs get a terminal event while their connections are still open. The server closes the
connections after that. All of it has one deadline (``exit_deadline``).
"""

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from agui_container import logging as logs
from agui_container.agents.as_agent import AgentLoadError
from agui_container.engine.engine import Engine
from agui_container.log_values import format_fields, mask_passwords
from agui_container.main import DRAIN_SECONDS, create_app
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import AppError
from agui_container.run.endings import describe_failure
from agui_container.server.exit_deadline import ExitDeadline
from agui_container.server.protocol_classes import choose_protocols, without_plain_grpc
from agui_container.settings import Auth, Scope, Settings, SettingsError, is_loopback
from agui_container.settings_sources import load_settings
from agui_container.tools.loader import ToolLoadError
from agui_container.web.event_stream import STALLED_SECONDS

FLUSH_SECONDS = 4.0
"""Seconds for readers that are behind, after every run has ended."""

CLOSE_SECONDS = 1
"""Seconds for clients to close their connections, and then for requests that are cancelled to send their error."""

WS_PING_SECONDS = 60.0
"""Seconds until a peer must have answered a ping. A slow peer receives the ping only after the data before it."""

KEEP_ALIVE_SECONDS = 75
"""Seconds until an idle connection is closed. Load balancers and clients close theirs earlier, so none is closed just
when the next request is sent."""

MAX_DESCRIPTORS = 65_536
"""Open files that the process asks for, if its hard limit allows as many."""

SWITCH_SECONDS = 0.0005
"""Seconds for which a computing thread may keep the interpreter from the event loop, which gives it up in each system
call. With Python's default of 5 ms a thread that reads a large body delays new connections ten times as long."""

GC_THRESHOLD = 10_000
"""Container objects, allocated minus freed, that start a garbage collection. With Python's default of 700 and 200 open
streams, twice as many first events took more than two milliseconds."""

GC_GENERATIONS = (2, 50)
"""Collections of young objects before one of the middle generation, and of those before one of all objects. Python's
own (10, 10) let the middle one grow to 100,000 objects, which holds the event loop for 100 ms. The work is equal."""

EXAMPLE = (
    """curl -N http://localhost:{port}/invocations -d '{{"threadId":"t1","runId":"r'$(date +%s)'","""
    """"messages":[{{"id":"m'$(date +%s)'","role":"user","content":"what time is it"}}]}}'"""
)

OPEN = "who can call: everybody who reaches port %s of this machine. AGUI_HOST=127.0.0.1 keeps it to this machine"
"""Log line of a server that asks for no tokens and listens on more than loopback."""

logger = logging.getLogger("agui_container")


class Server(uvicorn.Server):
    """A uvicorn server that drains the engine before it closes connections."""

    def __init__(self, config: uvicorn.Config, service: Engine, settings: Settings) -> None:
        super().__init__(config)
        self._page = settings.console
        self._asks_for_tokens = settings.auth is not Auth.NONE
        self._service = service
        self._deadline = ExitDeadline()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.start_error: str | None = None
        """The reason why the server could not start, if the operator can mend it."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal. A SystemExit or KeyboardInterrupt in any task stops asyncio's loop, which starts again.

        Ctrl-C raises nothing meanwhile: uvicorn calls ``handle_exit`` for it.
        """
        # Python's own handler, because one of the event loop would run after the timer that is late
        signal.signal(signal.SIGCONT, lambda *_: self._service.loop_monitor.forgive_stop())
        with asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            loop = runner.get_loop()
            serving = loop.create_task(self.serve(sockets), name="serve")
            while not serving.done():
                try:
                    loop.run_until_complete(serving)
                except (SystemExit, KeyboardInterrupt) as error:
                    if serving.done():
                        raise
                    logger.exception("task raised %s, only the task ends", type(error).__name__)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await self._service.open()
        except StoreUnavailable as error:
            self.start_error = f"AGUI_STORE: {error}"
        except BusUnavailable as error:
            self.start_error = f"AGUI_BUS: {error}"
        if self.start_error is not None:
            self.should_exit = True
            return
        await super().startup(sockets)
        gc.freeze()  # the objects of the start live as long as the process
        gc.enable()
        if self.started:
            for server in self.servers:
                cut_off_stalled_clients(server.sockets)
            port = self.servers[0].sockets[0].getsockname()[1]
            logger.info("listening %s", format_fields({"host": self.config.host, "port": port}))
            if self._page and sockets is None:
                logger.info("chat page: %s", f"http://{page_host(self.config.host)}:{port}/")
            if sockets is None and not (self._asks_for_tokens or is_loopback(self.config.host)):
                logger.info(OPEN, port)
            logger.info("try: %s", EXAMPLE.format(port=port))

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal. Then the process ends, even if tasks or threads are still running."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)
        if self.started:
            self._deadline.finish()

    def handle_exit(self, sig: int, _frame: FrameType | None) -> None:
        """Stop. uvicorn would raise the signal again afterwards; here a drained stop is a success."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        if self._loop is not None:
            self._deadline.begin(self._loop)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the runs, then close the connections. Each wait ends as soon as there is nothing to wait for."""
        logger.info("shutting down")
        await self._service.drain(DRAIN_SECONDS)
        closing = asyncio.create_task(self._service.close_parts(), name="close parts")
        until_close = self._deadline.remaining - 2 * CLOSE_SECONDS
        await self._service.wait_for_readers(max(0.0, min(FLUSH_SECONDS, until_close)))
        await super().shutdown(sockets)
        await closing
        if self.server_state.tasks:  # cancelled, because they took too long
            await asyncio.wait(self.server_state.tasks, timeout=CLOSE_SECONDS)


def cut_off_stalled_clients(listening: Iterable[socket.socket]) -> None:
    """Let the kernel close connections whose clients take nothing for ``STALLED_SECONDS``. Linux only."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    for each in listening:
        if option is not None and each.family in (socket.AF_INET, socket.AF_INET6):
            each.setsockopt(socket.IPPROTO_TCP, option, round(STALLED_SECONDS * 1000))  # accepted sockets inherit it


def raise_descriptor_limit() -> None:
    """Raise the limit of open files as far as the system allows, because each connection is one."""
    import resource  # noqa: PLC0415 - Windows has none, where commands that only talk to servers run

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def page_host(host: str) -> str:
    if host in ("0.0.0.0", "::") or is_loopback(host):  # noqa: S104 - it is compared
        return "localhost"
    return f"[{host}]" if ":" in host else host


def serve(agent: object = None, settings: Settings | None = None) -> None:
    """Serve an agent until SIGTERM or SIGINT: the last line of a script. Open runs get a terminal event first.

    The process ends soon after the server, even if a task or a thread of an agent continues.

    Args:
        agent: an agent in any accepted form, or ``"module:attribute"``. None serves the agent of the settings.
        settings: None reads the ``AGUI_*`` environment variables and ``agui.toml`` of the working folder.

    Raises:
        SystemExit: the server cannot start. Standard error has the reason.
    """
    status = run_server(agent, settings=settings)
    if status:
        sys.exit(status)


def run_server(  # noqa: PLR0913 - every one has a default
    agent: object = None,
    *,
    settings: Settings | None = None,
    config: Path | None = None,
    sockets: list[socket.socket] | None = None,
    on_start_error: Callable[[Exception], object] = lambda _: None,
    describe_failure: Callable[[BaseException], AppError] = describe_failure,
    **overrides: str | int | None,
) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit status.

    Args:
        agent: as in ``serve``.
        settings: as in ``serve``.
        config: the file to read in place of ``agui.toml``.
        sockets: listen already.
        on_start_error: called if the server cannot start, after the reason was printed.
        describe_failure: returns what clients read of an exception of the agent, or of a shutdown.
        overrides: values of settings.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GC_THRESHOLD, *GC_GENERATIONS)  # before the agent is loaded, so that the agent can set another one
    raise_descriptor_limit()
    try:
        settings = settings or load_settings(config, **overrides)
        logs.configure_logging(settings.log_format, settings.log_level)
        settings = without_plain_grpc(settings)
        app = create_app(agent, settings)
        app.state.service.describe_failure = describe_failure
        warn_if_shared(settings)
    except (SettingsError, AgentLoadError, ToolLoadError) as error:
        print_start_error(str(error))
        on_start_error(error)
        return 2
    if sockets is None and (reason := bind_error(settings.host, settings.port)) is not None:
        print_start_error(reason)
        return 2
    server = Server(uvicorn_config(app, settings), app.state.service, settings)
    server.run(sockets)
    if server.start_error is not None:
        print_start_error(server.start_error)
        on_start_error(SettingsError(server.start_error))
        return 2
    return 0 if server.started else 1


def bind_error(host: str, port: int) -> str | None:
    """Return why nothing can listen there, in words for the operator, or None if a server can."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        setting = "AGUI_PORT to a free port, or to 0 for any" if error.errno == errno.EADDRINUSE else "AGUI_HOST"
        return f"cannot listen on {host}:{port}: {error.strerror}; set {setting}."
    return None


def print_start_error(reason: str) -> None:
    """Print the one line for the operator, without the passwords of URLs."""
    print(f"cannot start: {mask_passwords(reason)}", file=sys.stderr)  # noqa: T201 - the log may not be configured yet


def warn_if_shared(settings: Settings) -> None:
    if settings.auth is Auth.NONE and settings.scope is Scope.NONE and not is_loopback(settings.host):
        fields = {"host": settings.host, "auth": settings.auth, "scope": settings.scope}
        logger.warning("server is open: every caller can read and change every thread %s", format_fields(fields))


def uvicorn_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a client could write any address into X-Forwarded-For
        **choose_protocols(),
        ws_per_message_deflate=False,  # 10 KB can inflate to 10 MB
        ws_ping_timeout=WS_PING_SECONDS,
        ws_max_size=2 * settings.max_body_bytes,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )
