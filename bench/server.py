"""A measured server: a process on a core of its own, watched from outside.

Rule: every contestant is started in the same way, pinned before its first instruction, and its figures (CPU, memory)
are the kernel's, so nothing runs inside it that would not run otherwise.
"""

import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[1]
PEERS_PYTHON = ROOT / ".venv" / "bench" / "bin" / "python"
OUR_PYTHON = ROOT / ".venv" / "shipped" / "bin" / "python"
"""Python with the packages of the image only, because a start looks through all installed packages."""
SERVER_CORE, CLIENT_CORE = 0, 1
START_SECONDS = 120.0
"""Under valgrind a start takes half a minute."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A measured server. ``{port}`` in a command or a value becomes the port."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def ours(agent: str) -> Contestant:
    """Return this container as its image starts it. ``agent`` is AGUI_AGENT."""
    settings = {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "{port}", "AGUI_AGENT": agent}
    return Contestant("ours", (str(OUR_PYTHON), "-m", "agui_container", "serve"), settings)


def peer(name: str, module: str) -> Contestant:
    """A module of ``bench.peers`` on uvicorn."""
    return Contestant(name, (str(PEERS_PYTHON), "-m", "bench.peers.serve", f"bench.peers.{module}", "{port}"))


TRANSPORT = ours("bench.script:agent")
STRINGS = replace(ours("bench.script:strings"), name="ours, of strings")
ASSISTANT = ours("assistant")
AGENTCORE = peer("AGUIApp", "agentcore")
OFFICIAL = peer("FastAPI + EventEncoder", "official")
RAW = peer("raw ASGI", "raw")
LEAST = peer("the least server", "least")
STRANDS = peer("ag-ui-strands", "strands_fake")
PYDANTIC_AI = peer("Pydantic AI", "pydantic_function")


def pin(core: int) -> None:
    """Keep this process, and what it starts from now on, on one core."""
    os.sched_setaffinity(0, {core})


class RunningContestant:
    """A contestant that runs. A context manager."""

    def __init__(self, contestant: Contestant, python_options: tuple[str, ...] = ()) -> None:
        self.name = contestant.name
        self.port = free_port()
        command = [part.format(port=self.port) for part in contestant.command]
        command[1:1] = python_options
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
        given = {name: value.format(port=self.port) for name, value in contestant.environment.items()}
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        pin(SERVER_CORE)
        self.began = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603 - commands of this module
            command,
            cwd=ROOT,
            env={**inherited, "PYTHONPATH": f"{ROOT}:{ROOT / 'app'}", **given},
            stdout=self.output,
            stderr=self.output,
        )
        pin(CLIENT_CORE)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise SystemExit(f"{self.name} does not start:\n{self.read_output()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def read_output(self) -> str:
        """Return the output so far."""
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of CPU since its start, of all its threads, from the kernel's clock for that process."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def memory(self) -> int:
        """Resident bytes."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0


@contextmanager
def running(*contestants: Contestant) -> Iterator[list[RunningContestant]]:
    """Run all contestants at once. Contestants without requests do nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(RunningContestant(contestant)) for contestant in contestants]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
