"""An agent whose module turns on every debug line, as people do while debugging."""

import logging

from tests.server.sockets.agents import agent

__all__ = ["agent"]

for name in ("", "uvicorn", "uvicorn.error", "websockets", "httpx", "h2", "hpack", "hpack.hpack", "grpclib"):
    logging.getLogger(name).setLevel(logging.DEBUG)

logging.getLogger("agent").debug("a debug line")
