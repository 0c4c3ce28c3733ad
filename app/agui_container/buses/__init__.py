"""Buses that carry the events of runs and commands between replicas.

Rule: buses import the ports, never the engine. The client of a server is imported only if the URL names one.
"""

from agui_container.buses.memory import MemoryBus
from agui_container.ports.bus import Bus

KINDS = "memory, redis://HOST:PORT/NUMBER, rediss://USER:PASSWORD@HOST:PORT/NUMBER"


def open_bus(url: str) -> Bus:
    """Return the bus that a URL names. The caller opens it before the first use. Valkey uses the URLs of Redis.

    Raises:
        ValueError: The URL names no bus. The message lists the valid forms. It does not repeat the URL, because the URL
            may contain a password.
    """
    if url == "memory":
        return MemoryBus()
    kind, _, rest = url.partition("://")
    if kind not in {"redis", "rediss"} or not rest.strip("/"):
        raise ValueError(f"must be one of {KINDS}")
    from agui_container.buses.redis import RedisBus  # noqa: PLC0415 - imported only if it is used

    try:
        return RedisBus(url)
    except ValueError:
        raise ValueError(f"must be one of {KINDS}") from None
