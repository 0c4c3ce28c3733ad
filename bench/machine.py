"""Description of the machine and the versions of a measurement, which the report always has beside the figures."""

import platform
import re
import statistics
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count, getloadavg
from pathlib import Path

from bench.server import CLIENT_CORE, PEERS_PYTHON, ROOT, SERVER_CORE, pin

OURS = ("uvicorn", "uvloop", "httptools", "fastapi", "pydantic", "ag-ui-protocol")
PEERS = ("bedrock-agentcore", "ag-ui-strands", "strands-agents", "pydantic-ai-slim")
VERSIONS = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"

TURNS = 500_000


def describe(seconds: float, paces: Sequence[float]) -> str:
    """Return a paragraph on the machine, the duration of the measurement, and the results of ``pace`` during it."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    cpu = model[1] if model else platform.machine()
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {commit()}, {cpu_count()} cores of {cpu}, "
        f"{platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load average of the last 15 minutes {getloadavg()[2]:.1f}.\n"
        f"{', '.join(f'{name} {version(name)}' for name in OURS)}; {', '.join(peers())}.\n"
        f"All of it took {seconds / 60:.1f} minutes; a fixed piece of work, before and after each scenario, "
        f"{statistics.median(paces):.0f} ms of the server's core ({min(paces):.0f} to {max(paces):.0f})."
    )


def commit() -> str:
    """Return the commit of the repository, marked if files have changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - a tool's name
    except (OSError, subprocess.CalledProcessError):
        return "no repository"
    return f"commit {found.strip()}"


def pace() -> float:
    """Return the milliseconds that the server's core needs for a fixed computation: a virtual core's speed varies."""
    pin(SERVER_CORE)
    taken = statistics.median(work() for _ in range(3))
    pin(CLIENT_CORE)
    return taken * 1e3


def work() -> float:
    """Return the seconds of CPU for the computation, which uses the interpreter and little memory."""
    began, numbers = time.process_time(), dict[int, int]()
    for number in range(TURNS):
        numbers[number & 1023] = number
    return time.process_time() - began


def peers() -> list[str]:
    """Return the versions of the peers."""
    command = [str(PEERS_PYTHON), "-c", VERSIONS, *PEERS]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()  # noqa: S603 - as above
    return [f"{name} {number}" for name, number in zip(PEERS, found, strict=True)]
