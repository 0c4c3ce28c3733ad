"""A store is chosen by its URL, and what chooses none is refused in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.stores import open_store
from app.stores.memory import MemoryStore
from app.stores.sql.store import SqlStore

ROOT = Path(__file__).parents[2]


def test_memory_is_a_store_of_its_own_each_time() -> None:
    assert isinstance(open_store("memory"), MemoryStore)
    assert open_store("memory") is not open_store("memory")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///store.db",
        "sqlite:////tmp/store.db",
        "postgresql://u:p@host:5432/db?sslmode=verify-full",
        "postgresql://h/d",
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
        "sqlite+aiosqlite:///x",
        "mysql://secret@h/d",
        "postgresql://",
        "postgresql://h:secret/d",
    ],
)
def test_anything_else_is_refused_without_saying_it_again(url: str) -> None:
    with pytest.raises(ValueError, match="must be one of memory, sqlite:///PATH, postgresql://") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


def test_a_store_in_memory_loads_no_database() -> None:
    code = "import sys; from app.stores import open_store; open_store('memory'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"sqlalchemy", "alembic", "aiosqlite", "psycopg", "sqlite3", "redis"}
