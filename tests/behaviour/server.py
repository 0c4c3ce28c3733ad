"""The real server in the test's own event loop, on a free port of the loopback."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from agui_container.server.uvicorn_protocols import HttpProtocol, WebSocketProtocol
from tests.engine.doubles import eventually


@asynccontextmanager
async def serving(app: FastAPI, **options: Any) -> AsyncIterator[str]:  # noqa: ANN401 - uvicorn's own options
    """Serve until the block ends; gives the base URL.

    uvicorn's own loop and shutdown poll ten times a second, so the server is taken down step by step instead.
    """
    config = uvicorn.Config(app, log_config=None, access_log=False, http=HttpProtocol, ws=WebSocketProtocol, **options)
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
        await app.state.service.drain(0)
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        await eventually(lambda: not server.server_state.connections and not server.server_state.tasks)
        await server.lifespan.shutdown()
