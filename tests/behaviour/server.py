"""The real server in the test's own event loop, on a free port of the loopback."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from agui_container.server.protocol_classes import choose_protocols
from tests.engine.doubles import eventually


@asynccontextmanager
async def serving(
    app: FastAPI,
    config: uvicorn.Config | None = None,
    **options: Any,  # noqa: ANN401 - uvicorn's own options
) -> AsyncIterator[str]:
    """Serve an application, whose runs are ended at the end of the block; gives the base URL."""

    async def drain() -> None:
        await app.state.service.drain(0)

    async with listening(app, config, drain, **options) as url:
        yield url


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def listening(
    app: ASGIApp,
    config: uvicorn.Config | None = None,
    drain: Callable[[], Awaitable[None]] | None = None,
    **options: Any,  # noqa: ANN401 - uvicorn's own options
) -> AsyncIterator[str]:
    """Serve any application; gives the base URL.

    uvicorn's own loop and shutdown poll ten times a second, so the server is taken down step by step instead.
    """
    config = config or uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        **choose_protocols(),
        **options,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    # asyncio turns Nagle's delay off for sockets that name their protocol only, as those it makes itself do.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    await server.startup([listener])
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        if drain is not None:
            await drain()
        for accepting in server.servers:
            accepting.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        await eventually(lambda: not server.server_state.connections and not server.server_state.tasks)
        await server.lifespan.shutdown()
