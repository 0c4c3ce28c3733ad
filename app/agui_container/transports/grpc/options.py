"""The choices that the gRPC services are built with. Nothing of gRPC is imported here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class RozWire(StrEnum):
    """The generation of roz clients that answers are written for."""

    BOTH = "both"
    V0_2 = "0.2"
    V1_0 = "1.0"


@dataclass(frozen=True, slots=True)
class Daemon:
    """The facts that a status shows.

    Attributes:
        host: address that the server listens on.
        endpoint: URL of the model server; empty for the offline model, which needs none, and where it is not known.
        data_dir: folder of the database file; empty where threads are kept elsewhere.
        started_at: Unix seconds, or None before the start.
        shutdown: ends the process in order; None where that is not allowed.
    """

    host: str
    endpoint: str
    data_dir: str
    started_at: Callable[[], float | None]
    shutdown: Callable[[], None] | None


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """All of them.

    Attributes:
        max_bytes: of one message.
        by_session: whether the session header says who owns threads and runs.
        origins: web origins that may call.
        keepalive: seconds of silence before a session is sent a keepalive.
        agent_names: names that kontekst clients may use for this server's agent.
        model: name of the model that answers where a client chooses none.
        models: names of the models that a client may choose.
        permissions: the tool policy's rules as ``(tool_pattern, policy, category, reason)``.
        context_tokens: budget of one model call's prompt; 0 is no budget.
        on_busy: what a message that comes during a turn does: ``reject``, ``enqueue`` or ``interrupt``.
    """

    max_bytes: int
    by_session: bool
    origins: Sequence[str]
    keepalive: float
    agent_names: Sequence[str]
    model: str
    models: Sequence[str]
    permissions: Sequence[tuple[str, str, str | None, str | None]]
    context_tokens: int
    on_busy: str
    roz_wire: RozWire
    daemon: Daemon
