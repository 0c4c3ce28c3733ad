"""PostgreSQL behind PgBouncer in transaction mode: no run fails, and a URL that does not say so gets a hint."""

import asyncio
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from sqlalchemy import make_url

from agui_container.ports.records import Change
from agui_container.ports.store import StoreUnavailable
from agui_container.stores import open_store
from agui_container.stores.sql.store import SqlStore
from tests.ports import free_port
from tests.servers import NOBODY, on_the_machine, running
from tests.stores.doubles import A, claim_run, ending, envelopes, get_delta, message, run

pytestmark = pytest.mark.services

RUNS, AT_ONCE = 72, 24
PATIENCE = 60.0
"""Seconds for a statement, so that a busy machine is no failure."""


@pytest.fixture
def pooler_url(postgres_url: str) -> Iterator[str]:
    """A pooler with a few connections to the database of the test."""
    database, port = make_url(postgres_url), free_port()
    schema = str(database.query["options"]).removeprefix("-csearch_path=")
    with TemporaryDirectory(prefix="pgbouncer-") as name:
        folder = Path(name)
        (folder / "users").write_text(f'"{database.username}" ""\n')
        (folder / "ini").write_text(f"""[databases]
postgres = host=127.0.0.1 port={database.port} connect_query='SET search_path = {schema}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 4
""")
        user = NOBODY if os.geteuid() == 0 else None
        if user:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        url = f"postgresql://{database.username}@127.0.0.1:{port}/postgres"
        command = [on_the_machine("pgbouncer"), folder / "ini"]
        with running(url, command, lambda: psycopg.connect(url).close(), folder / "log", user):
            yield url


async def use(store: SqlStore, number: int) -> None:
    key = run(f"r{number}", f"t{number}")
    await claim_run(store, key, change=Change([message("m1")]))
    for seq in range(1, 9):
        await store.append(key, A, envelopes(seq, seq, key.run_id))
    await store.renew(A, 15.0)
    await store.finish(key, A, [], ending(Change([message("m2")])))
    assert len(await store.envelopes(key, 0)) == 8
    assert [each.id for each in (await get_delta(store, key.thread)).messages] == ["m1", "m2"]


async def use_many(url: str) -> list[BaseException | None]:
    stores = [SqlStore(make_url(url), PATIENCE) for _ in range(3)]
    for store in stores:
        await store.open()
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with slots:
            await use(stores[number % len(stores)], number)

    results = await asyncio.gather(*map(one, range(RUNS)), return_exceptions=True)
    for store in stores:
        await store.aclose()
    return results


async def test_no_run_fails_behind_a_pooler_without_prepared_statements(pooler_url: str) -> None:
    assert await use_many(f"{pooler_url}?prepared=off") == [None] * RUNS


async def test_prepared_statements_behind_a_pooler_fail_with_a_hint(pooler_url: str) -> None:
    failures = [error for error in await use_many(pooler_url) if error is not None]
    assert failures
    for error in failures:
        assert isinstance(error, StoreUnavailable)
    assert any("add ?prepared=off to the URL" in str(error) for error in failures)


def test_another_value_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        open_store("postgresql://h/d?prepared=on")
