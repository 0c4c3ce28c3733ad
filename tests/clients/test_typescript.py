"""The TypeScript client's own tests, which Node.js runs against servers of this Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
SECONDS = 550


def need_client() -> str:
    """Return npm's path. Skip where Node.js or the client's packages are not installed; fail in CI."""
    npm = shutil.which("npm")
    if npm is not None and (CLIENT / "node_modules").is_dir():
        return npm
    reason = "clients/typescript/node_modules is missing (make js installs it): the TypeScript client is not tested."
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def test_the_typescript_client_passes_its_own_tests() -> None:
    done = subprocess.run(
        [need_client(), "test", "--silent"],
        cwd=CLIENT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
