"""The wheels of this project, built once for all processes of the suite by the command that docs/index.md shows."""

import fcntl
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
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("app", "clients/python"):
        shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "checkout"
    with (shared / "checkout.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build(tmp_path_factory.mktemp("checkout")).rename(folder)
    return folder


def build(folder: Path) -> Path:
    copy_sources(folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-c", BUILD], cwd=folder, env={**os.environ, "PATH": path}, check=True, timeout=SECONDS)
    return folder


@pytest.fixture(scope="session")
def wheel(wheels: Path) -> Path:
    (built,) = wheels.glob("agui_container-*.whl")
    return built
