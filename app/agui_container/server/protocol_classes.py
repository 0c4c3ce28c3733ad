"""The HTTP protocol that uvicorn gets: ours with a release whose private names are known, its own with others.

Rule: a newer uvicorn must not stop the start. With its own class uvicorn serves AG-UI as before; the direct way to the
socket and gRPC are missing then, and one line of the log says so.
"""

import asyncio
import logging
from functools import cache
from importlib.metadata import version
from typing import Literal

from agui_container.log_values import format_fields
from agui_container.settings import Settings

KNOWN = "0.54"
"""Release of uvicorn whose private names ``uvicorn_protocols`` uses. Its tests run with it."""

HttpClass = type[asyncio.Protocol] | Literal["auto"]
"""A class of ours, or uvicorn's by name."""

logger = logging.getLogger(__name__)


@cache
def is_known() -> bool:
    """Return True if our classes can be used. Log once if they cannot."""
    installed = version("uvicorn")
    if installed.startswith(f"{KNOWN}."):
        return True
    logger.warning("plain protocol classes %s", format_fields({"unknown": f"uvicorn {installed}", "without": "gRPC"}))
    return False


def choose_http() -> HttpClass:
    """Return the protocol of HTTP/1.1 that also hands HTTP/2 over to gRPC, if it can."""
    if not is_known():
        return "auto"
    from agui_container.server.uvicorn_protocols import HttpProtocol  # noqa: PLC0415 - another release may lack names

    return HttpProtocol


def without_plain_grpc(settings: Settings) -> Settings:
    """Return the settings without gRPC if no connection can be handed over to it."""
    return settings if is_known() else settings.model_copy(update={"grpc": False})
