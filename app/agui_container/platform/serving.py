"""uvicorn around the platform.

Rule: a signal ends the server and not the process, so that all containers end first and the command has a status of its
own.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from agui_container.platform.limits import PlatformLimits

LOOPBACK = "127.0.0.1"


class PlatformServer(uvicorn.Server):
    """A uvicorn server that tells when it listens, and that a signal ends in order."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.has_started = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self.has_started.set()

    def handle_exit(self, sig: int, _frame: FrameType | None) -> None:
        """Stop. A second SIGINT does not wait for requests."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def make_server(app: ASGIApp, limits: PlatformLimits, host: str, port: int) -> PlatformServer:
    """Return a server for the platform. uvicorn watches the size of the caller's frames."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        ws_max_size=limits.frame_bytes,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
        lifespan="on",
    )
    return PlatformServer(config)


@asynccontextmanager
async def serving(app: ASGIApp, limits: PlatformLimits) -> AsyncIterator[str]:
    """Serve the platform on a free port of loopback; gives its address."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        server = make_server(app, limits, LOOPBACK, 0)
        task = asyncio.create_task(server.serve([listener]), name="platform")
        await server.has_started.wait()
        try:
            yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task
