"""Environments of the measured servers, made by pip in ``.venv/bench``, one for each set of requirements."""

import hashlib
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".venv" / "bench"
PEERS = ROOT / "bench" / "peers.txt"
LOCKS = ("locks/requirements.lock", "requirements.lock")
"""Places of the lock of the image, below a checkout."""

SHARED = ("ag-ui-protocol", "fastapi", "httptools", "pydantic", "pydantic-core", "starlette", "uvicorn", "uvloop")
"""Packages that serve peers and this server in one version, so that their versions are not compared."""


def peers_python() -> Path:
    """Return the Python that serves the peers."""
    constraints = "".join(f"{name}=={version(name)}\n" for name in SHARED)
    return environment("peers", PEERS, constraints)


def server_python(checkout: Path) -> Path:
    """Return a Python with the packages of a checkout's image alone, because a start looks through all packages."""
    lock = next(path for name in LOCKS if (path := checkout / name).exists())
    return environment("server", lock)


def environment(kind: str, requirements: Path, constraints: str = "") -> Path:
    """Return the Python of the environment for these requirements. Install it if it does not exist."""
    digest = hashlib.sha256(f"{requirements.read_text()}{constraints}".encode()).hexdigest()[:12]
    folder = CACHE / f"{kind}-{digest}"
    python, done = folder / "bin" / "python", folder / ".done"
    if not done.exists():
        sys.stderr.write(f"installing {requirements} into {folder}\n")
        venv.create(folder, clear=True, with_pip=True)
        (folder / "constraints.txt").write_text(constraints)
        install(python, ("--requirement", str(requirements), "--constraint", str(folder / "constraints.txt")))
        done.touch()
    return python


def install(python: Path, arguments: Sequence[str]) -> None:
    """Install packages with the pip of an environment."""
    command = [str(python), "-I", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *arguments]
    subprocess.run(command, check=True)  # noqa: S603 - a command of this module
