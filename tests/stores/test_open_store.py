"""Stores by URL, and refusals of other values in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Pool, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection

from agui_container.stores import is_durable, open_store
from agui_container.stores.agentcore import AgentCoreStore
from agui_container.stores.memory import MemoryStore
from agui_container.stores.sql.store import SqlStore
from tests.stores.conftest import Listen

ROOT = Path(__file__).parents[2]

NORMAL = 1
"""SQLite's number for commits that reach the file at once, and the disk a little later."""


def loaded_by(url: str) -> set[str]:
    """The packages that a process has loaded once it has opened a store."""
    code = "import sys; from agui_container.stores import open_store; open_store(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, url], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_memory_is_a_store_of_its_own_each_time() -> None:
    assert isinstance(open_store("memory"), MemoryStore)
    assert open_store("memory") is not open_store("memory")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///store.db",
        "sqlite:////tmp/store.db",
        "sqlite:///store.db?timeout=1",
        "sqlite:///file:store.db?mode=rwc&uri=true",
        "postgresql://u:p@host:5432/db?sslmode=verify-full",
        "postgresql://h/d",
        "postgresql:///d?host=h",
        "postgresql://?host=h&dbname=d",
    ],
)
async def test_a_database_is_named_by_its_url(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    await store.aclose()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis",
        "sqlite",
        "sqlite://",
        "sqlite:///",
        "sqlite:///?timeout=1",
        "sqlite://?timeout=1",
        "sqlite://host/store.db",
        "sqlite+aiosqlite:///x",
        "mysql://secret@h/d",
        "postgresql://",
        "postgresql://h:secret/d",
        "agentcore-memory",
        "agentcore-memory:",
        "agentcore-memory:secret",
        "agentcore-memory://chats-0123456789",
        "agentcore-memory:chats-0123456789 ",
    ],
)
def test_anything_else_is_refused_without_saying_it_again(url: str) -> None:
    with pytest.raises(ValueError, match="must be one of memory, sqlite:///PATH, postgresql://") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///:memory:",
        "sqlite:///%3Amemory%3A",
        "sqlite:///:memory:?timeout=1",
        "sqlite:///file:?uri=true",
        "sqlite:///file::memory:?cache=shared&uri=true",
        "sqlite:///file:x?mode=memory&uri=true",
        "sqlite:///x?mode=memory",
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


def test_only_a_database_keeps_runs() -> None:
    durable = ["sqlite:///store.db", "postgresql://h/d"]
    assert [url for url in (*durable, "memory", "agentcore-memory:chats-0123456789") if is_durable(url)] == durable


def test_a_store_in_agentcore_memory_loads_neither_boto3_nor_a_database() -> None:
    loaded = loaded_by("agentcore-memory:chats-0123456789")
    assert not loaded & {"boto3", "botocore", "sqlalchemy", "alembic", "aiosqlite", "psycopg", "sqlite3", "redis"}


def test_a_store_in_memory_loads_no_database() -> None:
    assert not loaded_by("memory") & {
        "boto3",
        "botocore",
        "sqlalchemy",
        "alembic",
        "aiosqlite",
        "psycopg",
        "sqlite3",
        "redis",
    }


async def test_a_file_has_what_is_committed_when_the_process_dies_and_not_always_when_the_power_does(
    tmp_path: Path, listen: Listen
) -> None:
    store, chosen = SqlStore(make_url(f"sqlite:///{tmp_path}/store.db")), set[tuple[object, ...]]()

    def look(connection: DBAPIConnection, *_: object) -> None:
        cursor = connection.cursor()
        for name in ("journal_mode", "synchronous"):
            cursor.execute(f"PRAGMA {name}")
            chosen.add((name, *(cursor.fetchone() or ())))

    listen(Pool, "checkout", look)
    await store.open()
    await store.aclose()
    assert chosen == {("journal_mode", "wal"), ("synchronous", NORMAL)}
