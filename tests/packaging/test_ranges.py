"""The lowest releases of packages whose ranges begin below those of the locks. `make oldest` runs the core with all."""

import os
import re
import subprocess
import sys
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
