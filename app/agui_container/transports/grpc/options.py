"""Options of the gRPC services.

Rule: this module is imported at the start, so it does not import gRPC.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agui_container.transports.authentication import CallerAuthentication


class RozWire(StrEnum):
    """Generation of roz clients that responses are written for."""

    BOTH = "both"
    V0_2 = "0.2"
    V1_0 = "1.0"


@dataclass(frozen=True, slots=True)
class Daemon:
    """Facts that the status of the daemon shows.

    Attributes:
        host: address that the server listens on.
        endpoint: URL of the model server; empty if it is unknown, and for the offline model.
        data_dir: folder of the database file; empty if another store is used.
        started_at: Unix seconds, or None before the start.
        shutdown: shuts the process down in order; None if clients may not do so.
    """

    host: str
    endpoint: str
    data_dir: str
    started_at: Callable[[], float | None]
    shutdown: Callable[[], None] | None


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """Options of all gRPC services.

    Attributes:
        max_bytes: largest message, in bytes.
        by_session: True if the session header names the owner of threads and runs.
        origins: web origins that may call.
        authentication: verifies the tokens of callers.
        limits_by_session: True if a gateway sets the session header, so that it names an identity.
        keepalive: seconds of silence before a session is sent a keepalive.
        agent_names: names that kontekst clients may use for this server's agent.
        reports_context: True if the agent reports the tokens of its context, as the built-in assistant does.
        model: name of the model for clients that choose none.
        models: names of the models that a client may choose.
        permissions: the tool policy's rules as ``(tool_pattern, policy, category, reason)``.
        context_tokens: budget of one model call's prompt; 0 is no budget.
        on_busy: policy for a message during a turn: ``reject``, ``enqueue`` or ``interrupt``.
    """

    max_bytes: int
    by_session: bool
    origins: Sequence[str]
    authentication: CallerAuthentication
    limits_by_session: bool
    keepalive: float
    agent_names: Sequence[str]
    reports_context: bool
    model: str
    models: Sequence[str]
    permissions: Sequence[tuple[str, str, str | None, str | None]]
    context_tokens: int
    on_busy: str
    roz_wire: RozWire
    daemon: Daemon
