"""A real server process for the tests that need one."""

import os
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.secret_search import search

ROOT = Path(__file__).parents[2]
POLLS = 400
POLL_SECONDS = 0.05
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Port of the server."""

    port: int

    @property
    def invocations(self) -> str:
        """URL of runs over HTTP."""
        return f"http://127.0.0.1:{self.port}/invocations"

    @property
    def ws(self) -> str:
        """URL of runs over a WebSocket."""
        return f"ws://127.0.0.1:{self.port}/ws"


@contextmanager
def serving(python: str | Path = sys.executable, **settings: str) -> Iterator[ServerAddress]:
    """``python -m agui_container serve`` with these ``AGUI_*`` settings, until the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    given = {f"AGUI_{name.upper()}": value for name, value in settings.items()}
    env = {**kept, "AGUI_HOST": "127.0.0.1", "AGUI_PORT": str(port), **given}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([python, "-m", "agui_container", "serve"], cwd=ROOT, env=env, stdout=log, stderr=log)
        try:
            if not _answers(process, port):
                log.seek(0)
                raise AssertionError(f"the server did not start: {log.read().decode()[-2000:]}")
            yield ServerAddress(port)
        finally:
            _stop(process)
            log.seek(0)
            search(log.read(), "the log of a server")


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Return True if /ping answers before the process or the time ends."""
    for _ in range(POLLS):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=1) as answer:
                if answer.status == 200:
                    return True
        except (urllib.error.URLError, OSError):
            pass
        try:
            process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return False
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
