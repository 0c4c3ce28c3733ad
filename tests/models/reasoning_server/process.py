"""The thinking server as tests see it: a process of its own, started once, and stopped whatever happens."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
STOP_SECONDS = 120.0


@contextmanager
def thinking() -> Iterator[str]:
    """Run the server until the block ends; gives its URL."""
    command = [sys.executable, "-m", "tests.models.reasoning_server.server"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port.isdigit(), "the model server did not start; its standard error says why"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
        process.stdout.close()
