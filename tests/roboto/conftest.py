"""A server that serves Roboto's sessions, and the releases of Roboto's package that are pointed at it."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.official.servers import ROOT, Server, serving

SCENARIOS = Path(__file__).with_name("scenarios.py")
SECONDS = 100.0


@dataclass(frozen=True)
class Release:
    """One release of the package, in an environment of its own."""

    name: str
    port: int

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return ROOT / ".venv" / self.name / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which it finds the server."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROBOTO", "PYTHON"))}
        return {**kept, "ROBOTO_SERVICE_ENDPOINT": f"http://127.0.0.1:{self.port}", "ROBOTO_API_KEY": "any"}

    def play(self, scenario: str) -> Any:
        """What a scenario gives."""
        done = subprocess.run(
            [self.bin / "python", SCENARIOS, scenario],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def roboto_server() -> Iterator[Server]:
    """The server, as a process."""
    with serving(roboto="on") as server:
        yield server


@pytest.fixture(params=["roboto-oldest", "roboto"])
def release(request: pytest.FixtureRequest, roboto_server: Server) -> Release:
    """Each release. ``make test`` installs them."""
    found = Release(request.param, roboto_server.port)
    if not (found.bin / "python").exists():
        reason = f"{found.bin} is missing (make test makes it): Roboto's package was not tried."
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found
