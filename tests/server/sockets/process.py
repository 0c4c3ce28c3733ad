"""The server as a separate process: started, watched, and always stopped."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx

from tests.secret_search import search

ROOT = Path(__file__).parents[3]
AGENT = "tests.server.sockets.agents:agent"
START_SECONDS = 300.0
STOP_SECONDS = 120.0
"""Far more than a stop takes: drain, connections, tools' processes: 6 s, or 11 where one of those must be killed."""

ANSWER_SECONDS = 5.0
"""What a program has for an answer before it is asked again: one that only tried a port waits for the asker."""

LISTENING = re.compile(r"(?:listening host=\S+ port=|platform listens: http://[^/]+:|page for \S+ is at \S+:)(\d+)")
"""The line of a server, of the local AgentCore, or of a page of a runtime, once it listens."""


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with ``settings`` in place of its own ``AGUI_*`` variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    defaults = {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "0"}
    return {**inherited, "PYTHONPATH": f"{ROOT}:{ROOT / 'app'}:{ROOT / 'clients/python/src'}", **defaults, **settings}


WARNINGS = ("-W", "error", "-W", "ignore::ResourceWarning")
"""Errors, but for what uvloop says of connections that a client leaves open: raising that would hang its loop."""

COMMAND = (sys.executable, *WARNINGS, "-m", "agui_container", "serve")


class ServerProcess:
    """``python -m agui_container serve`` on a free port. A context manager; ``log`` grows while it runs.

    Args:
        command: what starts it, where it is started by something else.
        folder: where it is started. Elsewhere than in this repository it has no agent of the tests.
        settings: of its environment.
    """

    def __init__(self, command: Sequence[str] = COMMAND, folder: Path = ROOT, /, **settings: str) -> None:
        self.log: list[str] = []
        self._changed = threading.Condition()
        self._silent = False
        agent = {"AGUI_AGENT": AGENT} if folder == ROOT else {}
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment({**agent, **settings}),
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        try:
            self.port = self.wait_for_port()
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        """Stop it, and show what it logged where something failed."""
        try:
            self.stop()
        finally:
            self.kill()
            if failure is not None:
                print(*self.log, sep="\n")  # noqa: T201 - pytest shows it beside the failure

    def _watch(self) -> None:
        if self._process.stderr is None:
            return
        for line in self._process.stderr:
            search(line, "the log of a server")
            with self._changed:
                self.log.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._silent = True
            self._changed.notify_all()

    def wait_for(self, wanted: Callable[[str], bool], seconds: float = START_SECONDS) -> str:
        with self._changed:
            self._changed.wait_for(lambda: self._silent or any(map(wanted, self.log)), seconds)
            line = next(filter(wanted, self.log), None)
        if line is None:
            raise TimeoutError("\n".join(self.log))
        return line

    def wait_for_port(self, starts: int = 1) -> int:
        """Return the port on which it listens after so many starts."""
        self.wait_for(lambda _: len(self.ports) >= starts)
        return self.ports[starts - 1]

    @property
    def ports(self) -> list[int]:
        """The ports on which it has listened, one for each start."""
        return [int(found[1]) for line in self.log if (found := LISTENING.search(line))]

    def term(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the process with SIGSTOP for the block, and let it continue afterwards."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for the exit, and return its status. The log is complete then."""
        status = self._process.wait(seconds)
        self._watcher.join(seconds)
        return status

    def stop(self) -> int:
        if self._process.poll() is None:
            self.term()
        return self.wait()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    @property
    def invocations(self) -> str:
        return f"http://127.0.0.1:{self.port}/invocations"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def faults(self) -> list[str]:
        """Log lines that no client should be able to cause."""
        return [line for line in self.log if re.search(r"Traceback|stackTrace|Exception in|never retrieved", line)]

    @property
    def memory(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0


@contextmanager
def announced(*arguments: str) -> Iterator[str]:
    """A program of this Python until the block ends. Gives the first line that it prints: where it listens."""
    with subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert line, f"{arguments} did not start; its standard error says why"
            yield line
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def program_on(url: str, *command: str | Path, folder: Path = ROOT, **variables: str) -> Iterator[None]:
    """Run a program, and what it starts, until the block ends. The block begins once a GET of the URL is answered.

    That it listens is not enough: Vite listens for an instant at all addresses, to try a port, before it serves there.
    """
    environment = {**os.environ, **variables}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            while not answers(url):
                if process.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(f"{command} ended before it answered at {url}: {log.read()}")
                time.sleep(0.02)
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(url: str) -> bool:
    try:
        httpx.get(url, verify=False, timeout=ANSWER_SECONDS, trust_env=False)  # noqa: S501 - a test's own certificate
    except httpx.TransportError:
        return False
    return True


def serving(python: str | Path = sys.executable, **settings: str) -> ServerProcess:
    """A server of this Python with these ``AGUI_*`` settings. By default it serves the built-in assistant."""
    named = {"AGUI_AGENT": "assistant"} | {f"AGUI_{name.upper()}": value for name, value in settings.items()}
    return ServerProcess((str(python), "-m", "agui_container", "serve"), **named)


class Servers:
    """Running servers by their settings, so that tests with equal settings share one."""

    def __init__(self) -> None:
        self._servers: dict[frozenset[tuple[str, str]], ServerProcess] = {}

    def __call__(self, **settings: str) -> ServerProcess:
        key = frozenset(settings.items())
        if key not in self._servers:
            self._servers[key] = ServerProcess(**settings)
        return self._servers[key]

    def faults(self) -> list[str]:
        return [line for server in self._servers.values() for line in server.faults]

    def logs(self) -> str:
        return "\n".join(line for server in self._servers.values() for line in server.log)

    def dead(self) -> list[str]:
        return ["\n".join(server.log) for server in self._servers.values() if not server.running]

    def close(self) -> list[int]:
        for server in self._servers.values():
            if server.running:
                server.term()
        try:
            return [server.wait() for server in self._servers.values()]
        finally:
            for server in self._servers.values():
                server.kill()
