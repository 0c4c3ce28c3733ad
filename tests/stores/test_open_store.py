"""Stores by URL, and refusals of other values in one sentence."""

import pytest

from agui_container.stores import open_store
from agui_container.stores.agentcore import AgentCoreStore
from agui_container.stores.sql.store import SqlStore


@pytest.mark.parametrize(
    "url",
    [
        *("sqlite:///store.db", "sqlite:////tmp/store.db", "sqlite:///store.db?timeout=1"),
        *("sqlite:///file:store.db?mode=rwc&uri=true", "postgresql://u:p@host:5432/db?sslmode=verify-full"),
        *("postgresql://h/d", "postgresql:///d?host=h", "postgresql://?host=h&dbname=d"),
    ],
)
async def test_a_database_is_named_by_its_url(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    await store.aclose()


@pytest.mark.parametrize(
    "url",
    [
        *("", "redis", "sqlite", "sqlite://", "sqlite:///", "sqlite:///?timeout=1", "sqlite://?timeout=1"),
        *("sqlite://host/store.db", "sqlite+aiosqlite:///x", "mysql://secret@h/d", "postgresql://"),
        *("postgresql://h:secret/d", "agentcore-memory", "agentcore-memory:", "agentcore-memory:secret"),
        *("agentcore-memory://chats-0123456789", "agentcore-memory:chats-0123456789 "),
    ],
)
def test_anything_else_is_refused_without_saying_it_again(url: str) -> None:
    with pytest.raises(ValueError, match="must be one of memory, sqlite:///PATH, postgresql://") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *("sqlite:///:memory:", "sqlite:///%3Amemory%3A", "sqlite:///:memory:?timeout=1"),
        *("sqlite:///file:?uri=true", "sqlite:///file::memory:?cache=shared&uri=true"),
        *("sqlite:///file:x?mode=memory&uri=true", "sqlite:///x?mode=memory"),
        "sqlite:///file:/x?uri=true&vfs=memdb",
    ],
)
def test_a_database_without_a_file_is_refused_in_favour_of_the_store_in_memory(url: str) -> None:
    with pytest.raises(ValueError, match=r"^names a database of SQLite's without a file; use AGUI_STORE=memory$"):
        open_store(url)


@pytest.mark.parametrize(
    "memory", ["chats-0123456789", "arn:aws:bedrock-agentcore:eu-west-1:123456789012:memory/chats-0123456789"]
)
def test_a_memory_is_named_by_its_id_or_arn(memory: str) -> None:
    assert isinstance(open_store(f"agentcore-memory:{memory}"), AgentCoreStore)
