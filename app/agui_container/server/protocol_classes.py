"""The protocol classes that uvicorn gets: ours with releases whose private names are known, its own with others.

Rule: a newer uvicorn or websockets must not stop the start. With its own classes uvicorn serves AG-UI as before; the
limits of connections, the direct way to the socket and gRPC are missing then, and one line of the log says so.
"""

import asyncio
import logging
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Literal

from agui_container.runtime.log_values import format_fields
from agui_container.settings import Settings

KNOWN = {"uvicorn": "0.54", "websockets": "17.4"}
"""Releases whose private names ``uvicorn_protocols`` uses. The tests of both run with them."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProtocolClasses:
    """Classes, or uvicorn's names of its own ones, for HTTP/1.1 and for WebSockets.

    Attributes:
        http: the protocol of HTTP/1.1.
        ws: the protocol of WebSockets.
        hands_over: True if HTTP/2 connections are handed over to gRPC.
    """

    http: type[asyncio.Protocol] | Literal["auto"]
    ws: type[asyncio.Protocol] | Literal["websockets-sansio"]
    hands_over: bool


PLAIN = ProtocolClasses("auto", "websockets-sansio", hands_over=False)


@cache
def choose_protocols() -> ProtocolClasses:
    """Return our classes, or uvicorn's if a release is not known."""
    installed = {package: version(package) for package in KNOWN}
    unknown = [f"{name} {found}" for name, found in installed.items() if minor_of(found) != KNOWN[name]]
    if unknown:
        fields = {"unknown": ", ".join(unknown), "without": "gRPC, limits of connections"}
        logger.warning("plain protocol classes %s", format_fields(fields))
        return PLAIN
    from agui_container.server.uvicorn_protocols import (  # noqa: PLC0415 - another release may lack its names
        HttpProtocol,
        WebSocketProtocol,
    )

    return ProtocolClasses(HttpProtocol, WebSocketProtocol, hands_over=True)


def without_plain_grpc(settings: Settings) -> Settings:
    """Return the settings without gRPC if the protocol classes hand no connection over to it."""
    return settings if choose_protocols().hands_over else settings.model_copy(update={"grpc": False})


def minor_of(text: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(text.split(".")[:2])
