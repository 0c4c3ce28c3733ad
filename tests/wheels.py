"""The wheels of this project, built once in each process of the suite by the command that docs/install.md shows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "pip wheel --no-deps . ./clients/python"
SECONDS = 300.0


def copy_sources(target: Path) -> None:
    """Copy the files that the wheels are built from, so that nothing is written into the checkout."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("app", "clients/python"):
        shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the server and of the client."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_sources(folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-c", BUILD], cwd=folder, env={**os.environ, "PATH": path}, check=True, timeout=SECONDS)
    return folder


@pytest.fixture(scope="session")
def wheel(wheels: Path) -> Path:
    """The wheel of the server."""
    (built,) = wheels.glob("agui_container-*.whl")
    return built
