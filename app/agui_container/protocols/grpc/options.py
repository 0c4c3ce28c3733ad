"""Options of gRPC's connections and calls.

Rule: this module is imported at the start, so it does not import gRPC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from agui_container.web.authentication import CallerAuthentication

KNOWN_GRPCLIB = "0.4"
"""Release of grpclib whose private names ``connection`` and ``call`` use."""


def grpc_fault() -> str | None:
    """Return the reason why the installed gRPC cannot be served, or None."""
    installed = version("grpclib")
    if ".".join(installed.split(".")[:2]) != KNOWN_GRPCLIB:
        return f"grpclib {installed} is not known, this server uses private names of {KNOWN_GRPCLIB}"
    return None


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """Options of all calls. ``max_bytes`` holds before and after decompression."""

    max_bytes: int
    by_session: bool
    origins: Sequence[str]
    authentication: CallerAuthentication
    limits_by_session: bool
