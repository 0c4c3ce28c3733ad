"""The wheels of this project, built once for all processes of the suite by the command that docs/index.md shows."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agui_container.cli.wheels import Wheel

ROOT = Path(__file__).parents[1]
BUILD = "pip wheel --no-deps . ./clients/python"
SECONDS = 300.0


def copy_sources(target: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("app", "clients/python"):
        shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of all processes of the suite. The first that asks for it makes it, the others wait."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, made = shared / name, shared / f"{name}.made"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that failed
            folder.mkdir()
            make(folder)
            made.touch()
    return folder


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "checkout", build)


def build(folder: Path) -> None:
    copy_sources(folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-c", BUILD], cwd=folder, env={**os.environ, "PATH": path}, check=True, timeout=SECONDS)


@pytest.fixture(scope="session")
def wheel(wheels: Path) -> Path:
    (built,) = wheels.glob("agui_container-*.whl")
    return built


@pytest.fixture
def stand_in_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty wheels in place of the installed packages, which run from the checkout here."""

    def find_wheel(package: str) -> Wheel:
        return Wheel(f"wheels/{package.replace('-', '_')}-0.1.0-py3-none-any.whl", b"")

    monkeypatch.setattr("agui_container.cli.init.find_wheel", find_wheel)
