"""Where runs and threads are kept.

Rule: stores know the ports, never the engine. A database's client is loaded only where a database is named.
"""

import re
from urllib.parse import unquote

from agui_container.ports.store import Store
from agui_container.stores.memory import MemoryStore

KINDS = "memory, sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE, agentcore-memory:MEMORY_ID"

DATABASE = re.compile(r"sqlite:///+[^/?]|postgresql://+[^/]")
IN_MEMORY = re.compile(r"sqlite:///(file:|(file:)?:memory:)($|\?)|sqlite:.*[?&](mode=memory|vfs=memdb)($|&)")
"""Databases of SQLite's that no file holds: each connection has another, and nothing is kept."""


def open_store(url: str) -> Store:
    """The store that a URL names; ``open`` it before it is used.

    Raises:
        ValueError: it names none. The message says what would, and nothing of the URL, which may hold a password.
    """
    if IN_MEMORY.match(unquote(url)):
        raise ValueError("names a database of SQLite's without a file; use AGUI_STORE=memory")
    if url == "memory":
        return MemoryStore()
    kind, _, rest = url.partition(":")
    try:
        if kind == "agentcore-memory":
            from agui_container.stores.agentcore import AgentCoreStore  # noqa: PLC0415 - only where it is needed

            return AgentCoreStore(rest)
        if DATABASE.match(url):
            return _sql_store(url)
    except ValueError:
        pass
    raise ValueError(f"must be one of {KINDS}")


def is_durable(url: str) -> bool:
    """Whether the store that a URL names keeps runs and their events beyond the process."""
    return url.startswith(("sqlite:", "postgresql:"))


def _sql_store(url: str) -> Store:
    from sqlalchemy import make_url  # noqa: PLC0415 - only where it is needed
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    from agui_container.stores.sql.store import SqlStore  # noqa: PLC0415

    try:
        return SqlStore(make_url(url))
    except ArgumentError as error:
        raise ValueError("not a URL") from error
