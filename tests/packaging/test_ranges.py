"""The lowest releases of packages whose ranges begin below the locks: some alone, and all that every server needs."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.packaging.test_locks import IMAGE_EXTRAS, PROJECT, ROOT

pytestmark = [pytest.mark.packages, pytest.mark.processes]

SOCKETS = ("tests/web/test_socket.py", "tests/server/test_protocol_classes.py")
PLATFORM = "tests/aws/platform/test_sockets.py"
RELEASES = {
    "websockets==15.0.1": (PLATFORM,),
    "websockets==16.0": (*SOCKETS, PLATFORM),
    "rich==13.3.0": ("tests/cli/test_screen.py",),
    "redis==5.3.0": ("tests/replicas/buses",),
}
"""Releases, and the tests that use most of them."""
CORE = (
    *SOCKETS,
    *(f"tests/web/test_{name}.py" for name in ("http", "requests", "event_stream", "routes", "openapi")),
    "tests/server/test_http_protocol.py",
)
"""Tests that use most of all dependencies in seconds. `make oldest` takes minutes."""


def run_with(folder: Path, packages: Sequence[str], tests: Sequence[str]) -> None:
    """Install packages into a folder, and run tests that find them before those of the locks."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(folder), *packages],
        check=True,
    )
    env = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "0", *tests]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ passed", done.stdout)


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_below_the_lock_works(release: str, tmp_path: Path) -> None:
    run_with(tmp_path, ["--no-deps", release], RELEASES[release])


def lowest(requirement: Requirement) -> str:
    floors = [each.version for each in requirement.specifier if each.operator == ">="]
    return "==".join([requirement.name, *floors])


def test_the_lowest_releases_of_all_that_every_server_needs_work_together(tmp_path: Path) -> None:
    needed = map(Requirement, PROJECT["dependencies"])
    run_with(tmp_path, [lowest(each) for each in needed if each.name != "agui-client"], CORE)


OPTIONAL = PROJECT["optional-dependencies"]
RANGES: dict[str, SpecifierSet] = {
    canonicalize_name(each.name): each.specifier
    for each in map(Requirement, [*PROJECT["dependencies"], *chain(*(OPTIONAL[extra] for extra in IMAGE_EXTRAS))])
    if each.name != "agui-client"
}
"""Packages of the server, and the versions that it takes."""
FRAMEWORKS = ("adk", "ag2", "agno", "claude_sdk", "langchain", "langroid", "llama_index", "openai_agents", "strands")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_takes_versions_of_shared_packages_that_work_here(framework: str) -> None:
    [folder] = (ROOT / ".venv" / "frameworks" / framework).glob("lib/*/site-packages")
    packages = list(distributions(path=[str(folder)]))
    versions: dict[str, set[str]] = {name: {metadata.version(name)} for name in RANGES}
    for name, version in (release.split("==") for release in RELEASES):
        versions.get(name, set()).add(version)
    for package in packages:
        versions.get(canonicalize_name(package.name), set()).add(package.version)
    wanted = [Requirement(text) for each in packages for text in each.requires or ()]
    shared = [each for each in wanted if each.name in RANGES and (each.marker is None or each.marker.evaluate())]
    assert shared
    for each in shared:
        assert any(map((each.specifier & RANGES[each.name]).contains, versions[each.name])), each
