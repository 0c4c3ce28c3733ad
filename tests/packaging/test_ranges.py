"""The lowest releases of packages whose ranges begin below those of the locks. `make oldest` runs the core with all."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_locks import ROOT

pytestmark = [pytest.mark.packages, pytest.mark.processes]

SOCKETS = ("tests/web/test_socket.py", "tests/server/test_protocol_classes.py")
PLATFORM = "tests/aws/platform/test_sockets.py"
RELEASES = {
    "websockets==15.0.1": (*SOCKETS, PLATFORM),
    "websockets==16.0": (*SOCKETS, PLATFORM),
    "rich==13.3.4": ("tests/cli/test_screen.py",),
    "redis==5.3.0": ("tests/replicas/buses",),
}
"""Releases, and the tests that use most of them."""


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_below_the_lock_works(release: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), release]
    subprocess.run(pip, check=True)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "0"]
    done = subprocess.run(
        [*pytest_, *RELEASES[release]], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ passed", done.stdout)


FRAMEWORKS = [
    "ag2>=1.2.1",
    "agno>=3.1.10",
    "google-adk>=2.13",
    "langroid>=0.69.16",
    "llama-index-core>=0.14.25",
    "openai-agents>=0.24",
]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_installs_beside_the_server_without_an_older_release_of_it(wheels: Path, framework: str) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    pip += [*map(str, wheels.glob("agui_*.whl")), framework]
    done = subprocess.run(pip, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
