"""Options of gRPC's connections and calls.

Rule: this module is imported at the start, so it does not import gRPC.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agui_container.transports.authentication import CallerAuthentication


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """Options of all calls.

    Attributes:
        max_bytes: largest message, in bytes, before and after decompression.
        by_session: True if the session header names the owner of threads and runs.
        origins: web origins that may call.
        authentication: verifies the tokens of callers.
        limits_by_session: True if a gateway sets the session header, so that it names an identity.
    """

    max_bytes: int
    by_session: bool
    origins: Sequence[str]
    authentication: CallerAuthentication
    limits_by_session: bool
