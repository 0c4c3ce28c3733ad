"""The protocols that uvicorn gets: ours with a release whose private names are known, its own with others.

Rule: a newer uvicorn must not stop the start. With its own classes uvicorn serves AG-UI as before; the direct way to
the socket and gRPC are missing then, and one line of the log says so.
"""

import asyncio
import logging
from functools import cache
from importlib.metadata import version
from typing import Literal, TypedDict

from agui_container.log_values import format_fields
from agui_container.settings import Settings

KNOWN = "0.54"
"""Release of uvicorn whose private names ``uvicorn_protocols`` uses. Its tests run with it."""


class ProtocolClasses(TypedDict):
    """Options of uvicorn: classes of ours, or its own by name."""

    http: type[asyncio.Protocol] | Literal["auto"]
    ws: type[asyncio.Protocol] | Literal["websockets-sansio"]


logger = logging.getLogger(__name__)


@cache
def is_known() -> bool:
    """Return True if our classes can be used. Log once if they cannot."""
    installed = version("uvicorn")
    if installed.startswith(f"{KNOWN}."):
        return True
    logger.warning("plain protocol classes %s", format_fields({"unknown": f"uvicorn {installed}", "without": "gRPC"}))
    return False


def choose_protocols() -> ProtocolClasses:
    """Return those of HTTP/1.1, which also hands HTTP/2 over to gRPC if it can, and of WebSockets."""
    if not is_known():
        return {"http": "auto", "ws": "websockets-sansio"}
    from agui_container.server import uvicorn_protocols as ours  # noqa: PLC0415 - another release may lack names

    return {"http": ours.HttpProtocol, "ws": ours.SocketProtocol}


def without_plain_grpc(settings: Settings) -> Settings:
    """Return the settings without gRPC if no connection can be handed over to it."""
    return settings if is_known() else settings.model_copy(update={"grpc": False})
