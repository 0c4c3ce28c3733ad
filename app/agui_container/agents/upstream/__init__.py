"""Agents behind an AG-UI server: one that a URL or an ARN names, or an ASGI application in this process.

Rule: an upstream server is an agent as any other. The engine's order, stores, approvals and transports stand in front
of it.
"""

from collections.abc import Awaitable, Callable, Container, Sequence

from msgspec import Struct, field


class UpstreamOptions(Struct, frozen=True):
    """Settings of upstream agents. The server is not offered ``own_tools``; ``headers`` are the caller's.

    Each agent that is made appends to ``closers`` the function that closes its connections.
    """

    headers: Sequence[str] = ()
    keeps_raw: bool = False
    own_tools: Container[str] = ()
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
