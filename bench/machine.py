"""Where and on what the figures were taken, so that a figure never stands without them."""

import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count, getloadavg
from pathlib import Path

from bench.server import PEERS_PYTHON

OURS = ("uvicorn", "uvloop", "httptools", "fastapi", "pydantic", "ag-ui-protocol")
PEERS = ("bedrock-agentcore", "ag-ui-strands", "strands-agents", "pydantic-ai-slim")
VERSIONS = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"


def described() -> str:
    """A paragraph."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    cpu = model[1] if model else platform.machine()
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {cpu_count()} cores of {cpu}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load average of the last 15 minutes {getloadavg()[2]:.1f}.\n"
        f"{', '.join(f'{name} {version(name)}' for name in OURS)}; {', '.join(peers())}."
    )


def peers() -> list[str]:
    """What is installed beside us."""
    command = [str(PEERS_PYTHON), "-c", VERSIONS, *PEERS]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()  # noqa: S603 - as above
    return [f"{name} {number}" for name, number in zip(PEERS, found, strict=True)]
