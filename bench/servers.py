"""The measured servers: processes on a core of their own, watched from outside.

Rule: every contestant is started in the same way, pinned before its first instruction, and its figures (CPU, memory)
are the kernel's, so nothing runs inside it that would not run otherwise.
"""

import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Self

from bench.environments import ROOT, peers_python, server_python

OURS, OTHER = "this server", "the other checkout"
SERVER_CORE, CLIENT_CORE = 0, 1
START_SECONDS = 60.0
SCRIPT = "bench.agents:agent"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A measured server. ``{port}`` in a command or a value becomes the port.

    Attributes:
        word: the command that asks its agent for text deltas.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    word: str = "deltas"


def ours(agent: str = SCRIPT, checkout: Path = ROOT, settings: Mapping[str, str] | None = None) -> Contestant:
    """Return the server of a checkout, with the packages of its image. ``agent`` is AGUI_AGENT."""
    source = os.pathsep.join(map(str, (ROOT, checkout / "app", checkout / "clients" / "python" / "src")))
    values = {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "{port}", "AGUI_AGENT": agent, "PYTHONPATH": source}
    values |= settings or {}
    command = (str(server_python(checkout)), "-m", "agui_container", "serve")
    word = "stream" if agent == "assistant" else "deltas"
    return Contestant(OURS if checkout == ROOT else OTHER, command, values, word)


def peer(name: str, module: str, word: str = "deltas") -> Contestant:
    """Return a module of ``bench.peers`` on uvicorn."""
    command = (str(peers_python()), "-m", "bench.peers.serve", f"bench.peers.{module}", "{port}")
    return Contestant(name, command, {"PYTHONPATH": str(ROOT)}, word)


def agentcore_program() -> Contestant:
    """Return AWS's ``AGUIApp`` as its documentation starts it."""
    command = (str(peers_python()), "-m", "bench.peers.agentcore")
    return Contestant("AGUIApp", command, {"PYTHONPATH": str(ROOT), "PORT": "{port}"})


def pin(core: int) -> None:
    """Keep this process, and what it starts from now on, on one core."""
    os.sched_setaffinity(0, {core} & os.sched_getaffinity(0) or os.sched_getaffinity(0))


class RunningServer:
    """A contestant that runs. A context manager."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.name = contestant.name
        self.port = free_port()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
        given = {name: value.format(port=self.port) for name, value in contestant.environment.items()}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {SERVER_CORE})
        self.began = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603 - commands of this module
            [part.format(port=self.port) for part in contestant.command],
            cwd=ROOT,
            env={**inherited, **given},
            stdout=self._output,
            stderr=self._output,
        )
        os.sched_setaffinity(0, cores)

    def __enter__(self) -> Self:
        self.wait_until_listening()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def wait_until_listening(self) -> None:
        """Ask for the port every two milliseconds."""
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} does not start:\n{self.read_output()}")
            time.sleep(0.002)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def terminate(self) -> int:
        """End the process by SIGTERM, and return its exit status."""
        self._process.terminate()
        return self._process.wait(timeout=START_SECONDS)

    def read_output(self) -> str:
        """Return the output so far."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def is_idle(self) -> bool:
        """Return True if ``/ping`` says that no run is open."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/ping")
            return b'"Healthy"' in connection.getresponse().read()
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def cpu(self) -> float:
        """Return the seconds of CPU since its start, of all its threads, from the kernel's clock for that process."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def memory(self) -> int:
        """Return the resident bytes."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0

    def open_files(self) -> int:
        """Return the number of open files."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextmanager
def running(contestants: Sequence[Contestant]) -> Iterator[list[RunningServer]]:
    """Run all contestants at once. Contestants without requests do nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(RunningServer(contestant)) for contestant in contestants]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
