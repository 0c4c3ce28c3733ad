"""How replicas hear of each other's runs.

Rule: buses know the ports, never the engine. A client is loaded only where a server is named.
"""

from agui_container.buses.memory import MemoryBus
from agui_container.ports.bus import Bus

KINDS = "memory, redis://HOST:PORT/NUMBER, rediss://USER:PASSWORD@HOST:PORT/NUMBER"


def open_bus(url: str) -> Bus:
    """The bus that a URL names; ``open`` it before it is used. Valkey is named like Redis.

    Raises:
        ValueError: it names none. The message says what would, and nothing of the URL, which may hold a password.
    """
    if url == "memory":
        return MemoryBus()
    kind, _, rest = url.partition("://")
    if kind not in {"redis", "rediss"} or not rest.strip("/"):
        raise ValueError(f"must be one of {KINDS}")
    from agui_container.buses.redis import RedisBus  # noqa: PLC0415 - only where it is needed

    try:
        return RedisBus(url)
    except ValueError:
        raise ValueError(f"must be one of {KINDS}") from None
