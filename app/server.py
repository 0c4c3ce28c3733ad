"""The server: uvicorn with our application, from its start to its end.

Rule: SIGTERM drains first. Open runs get a terminal event while their connections still stand, and only then the server
closes them.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from app import logs
from app.agents.callables import AgentLoadError
from app.connections import Frames, Requests
from app.engine.service import Service
from app.main import DRAIN_SECONDS, create_app
from app.ports.bus import BusUnavailable
from app.ports.store import StoreUnavailable
from app.settings import Settings, SettingsError, load_settings
from app.tools.loader import ToolLoadError

FLUSH_SECONDS = 1
"""How long readers that are behind, and then connections that close, may take once every run has ended."""

LEAVE_SECONDS = 0.8
"""What Python may take to end when everything is closed."""

WS_PING_SECONDS = 60.0
"""A peer whose answer to a ping is later than this is gone. A slow one gets the ping only behind the data before it."""

KEEP_ALIVE_SECONDS = 75
"""How long an idle connection is kept: longer than load balancers and clients keep theirs, so that none is closed just
when the next request comes."""

YOUNG_OBJECTS = 10_000
"""How many containers more than were let go make Python look for garbage. At its own 700 it looked through what streams
hold so often that beside 200 of them twice as many first events took more than two milliseconds."""

COLLECTIONS = (2, 50)
"""Collections of young objects before one of the middle generation, and of those before one of all objects. Python's
own (10, 10) let the middle one grow to 100,000 objects, which holds the event loop for 100 ms. The work is equal."""

EXAMPLE = (
    """curl -N http://localhost:{port}/invocations -d '{{"threadId":"t1","runId":"r'$(date +%s)'","""
    """"messages":[{{"id":"m1","role":"user","content":"what time is it"}}]}}'"""
)

logger = logging.getLogger("app")


class Server(uvicorn.Server):
    """uvicorn, draining the engine before it closes connections."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.why_not: str | None = None
        """Why it could not start, where that is not for a traceback to say."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve. Where a task that somebody has made raises SystemExit, asyncio stops; the server goes on."""
        with asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            loop = runner.get_loop()
            serving = loop.create_task(self.serve(sockets), name="serve")
            while not serving.done():
                try:
                    loop.run_until_complete(serving)
                except SystemExit:
                    if serving.done():
                        raise
                    logger.exception("a task raised SystemExit, which ends that task only")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Connect to what is kept, listen, and say how to talk to us."""
        try:
            await self._service.open()
        except StoreUnavailable as error:
            self.why_not = f"AGUI_STORE: {error}"
        except BusUnavailable as error:
            self.why_not = f"AGUI_BUS: {error}"
        if self.why_not is not None:
            self.should_exit = True
            return
        await super().startup(sockets)
        collect_garbage()
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            logger.info("listening on %s:%s; try:\n%s", self.config.host, port, EXAMPLE.format(port=port))

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal; then the process ends, whatever still goes on in it."""
        await super().serve(sockets)
        if self.started:
            see_to_the_end()

    def handle_exit(self, sig: int, _frame: FrameType | None) -> None:
        """Stop, and not die of the same signal afterwards, as uvicorn would: a drained stop is a success."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the runs, then the connections."""
        logger.info("shutting down")
        await self._service.drain(DRAIN_SECONDS)
        await self._service.read_out(FLUSH_SECONDS)
        await super().shutdown(sockets)


def see_to_the_end() -> None:
    """End the process soon, if it does not end by itself: an agent can ignore its cancellation, or block a thread."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}

    def leave() -> None:
        names = ", ".join(sorted(task.get_name() for task in tasks if not task.done()))
        logger.error("the process leaves behind what does not end: %s", names or "threads")
        logging.shutdown()
        os._exit(0)

    timer = threading.Timer(LEAVE_SECONDS, leave)
    timer.daemon = True
    timer.start()


def collect_garbage() -> None:
    """From now on, and never again what the start has made: it stays until the end, in a restored snapshot as well."""
    gc.freeze()
    gc.enable()


def serve() -> int:
    """Serve until SIGTERM or SIGINT; the exit status."""
    gc.set_threshold(YOUNG_OBJECTS, *COLLECTIONS)  # before an agent is loaded, which may have reasons for another
    try:
        settings = load_settings()
        logs.configure(settings.log_format)
        app = create_app(settings)
    except (SettingsError, AgentLoadError, ToolLoadError) as error:
        print(f"cannot start: {error}", file=sys.stderr)  # noqa: T201 - the one line an operator needs
        return 2
    server = Server(configured(app, settings), app.state.service)
    server.run()
    if server.why_not is not None:
        print(f"cannot start: {server.why_not}", file=sys.stderr)  # noqa: T201 - as above
        return 2
    return 0 if server.started else 1


def configured(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody here asks for the client's address
        http=Requests,
        ws=Frames,
        ws_per_message_deflate=False,  # 10 KB could become 10 MB of work, again and again (docs/benchmarks.md)
        ws_ping_timeout=WS_PING_SECONDS,
        ws_max_size=2 * settings.max_body_bytes,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=FLUSH_SECONDS,
    )
