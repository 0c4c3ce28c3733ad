"""Storage of runs and threads.

Rule: stores import the ports, never the engine. The client of a database is imported only if the URL names one.
"""

import re
import time
from collections.abc import Callable
from urllib.parse import unquote

from agui_container.ports.store import Store
from agui_container.stores.memory import MemoryStore

KINDS = "memory, sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE, agentcore-memory:MEMORY_ID"

DATABASE = re.compile(r"sqlite:///+[^/?]|postgresql://+[^/]")
IN_MEMORY = re.compile(r"sqlite:///(file:|(file:)?:memory:)($|\?)|sqlite:.*[?&](mode=memory|vfs=memdb)($|&)")
"""SQLite databases without a file. Each connection would have a database of its own, so nothing would be stored."""


def open_store(url: str, now: Callable[[], float] = time.time) -> Store:
    """Return the store that a URL names. The caller opens it before the first use.

    ``now`` is the clock of a store that has none of its own, which is any but PostgreSQL.

    Raises:
        ValueError: The URL names no store. The message lists the valid forms. It does not repeat the URL, because the
            URL may contain a password.
    """
    if IN_MEMORY.match(unquote(url)):
        raise ValueError("names a database of SQLite's without a file; use AGUI_STORE=memory")
    if url == "memory":
        return MemoryStore(now=now)
    kind, _, rest = url.partition(":")
    try:
        if kind == "agentcore-memory":
            from agui_container.stores.agentcore import AgentCoreStore  # noqa: PLC0415 - imported only if it is used

            return AgentCoreStore(rest, now=now)
        if DATABASE.match(url):
            return _sql_store(url, now)
    except ValueError:
        pass
    raise ValueError(f"must be one of {KINDS}")


def _sql_store(url: str, now: Callable[[], float]) -> Store:
    from sqlalchemy import make_url  # noqa: PLC0415 - imported only if it is used
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    from agui_container.stores.sql.store import SqlStore  # noqa: PLC0415

    try:
        return SqlStore(make_url(url), now=now)
    except ArgumentError as error:
        raise ValueError("not a URL") from error
