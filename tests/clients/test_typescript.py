"""The TypeScript client's own tests, which Node.js runs against servers of this Python."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.locks import locked
from tests.machine import find_program

pytestmark = pytest.mark.other_language

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
FILES = sorted(path.name.removesuffix(".test.ts") for path in (CLIENT / "test").glob("*.test.ts"))
SECONDS = 900


def run(*command: str) -> None:
    done = subprocess.run(
        command,
        cwd=CLIENT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]


@pytest.fixture(scope="session")
def compiled(pytestconfig: pytest.Config, testrun_uid: str) -> Path:
    npm = find_program("npm")
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("typescript")
    stamp = folder / "compiled"
    with locked(folder / "lock", fcntl.LOCK_EX):
        if not stamp.exists() or stamp.read_text() != testrun_uid:
            run(npm, "run", "--silent", "compile-tests")
            stamp.write_text(testrun_uid)
    return CLIENT / "build" / "test"


@pytest.mark.timeout(2 * SECONDS + 30)
@pytest.mark.parametrize("file", FILES)
def test_the_typescript_client_passes_its_own_tests(compiled: Path, file: str) -> None:
    run("node", "--test", "--test-reporter=spec", str(compiled / f"{file}.test.js"))
