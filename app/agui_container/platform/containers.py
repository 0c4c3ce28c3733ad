"""Containers of sessions: a process of a command, a container of an image, or a fork of a warmed process.

Rule: a container is told its port by environment, gets signals, and is gone when ``kill`` returns. Its output goes to
standard error of the platform.
"""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from agui_container.platform.listeners import Listener, listeners_of

CONTAINER_PORT = 8080
"""Port on which the container of an image listens."""

PORTS = range(20_000, 30_000)
"""Ports of containers. Kernels choose higher ones for outgoing connections, so none is taken before its container."""

TRIES = 100

STANDARD_ERROR = 2
"""Standard output of the platform is for reports."""


class ContainerFailure(Exception):
    """A container that cannot be started or told something. The text is for the log."""


class SessionContainer(Protocol):
    """The container of one session.

    Attributes:
        port: port of loopback under which it is reached.
        name: its process or its container, for people.
    """

    port: int
    name: str

    async def start(self) -> None:
        """Start it. Raises ``ContainerFailure`` if there is no such program or image."""

    async def wait(self) -> str:
        """Wait until it has ended, and return how."""

    async def freeze(self) -> None:
        """Stop all of its execution."""

    async def thaw(self) -> None:
        """Let it continue where it was."""

    async def terminate(self) -> None:
        """Send SIGTERM."""

    async def kill(self) -> None:
        """Send SIGKILL to all of it."""

    def listeners(self) -> Sequence[Listener] | None:
        """Return the addresses on which it listens, or None if they cannot be seen."""


ContainerFactory = Callable[[], SessionContainer]


class ProcessGroup(ABC):
    """A process that leads a group, with all that it starts.

    Attributes:
        pid: id of the process, None before it is started.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.name = "not started"
        self.pid: int | None = None

    async def freeze(self) -> None:
        """Send SIGSTOP to the group."""
        self._signal(signal.SIGSTOP)

    async def thaw(self) -> None:
        """Send SIGCONT to the group."""
        self._signal(signal.SIGCONT)

    async def kill(self) -> None:
        """Send SIGKILL to the group, and wait until the process is gone."""
        self._signal(signal.SIGKILL)
        await self.wait()

    @abstractmethod
    async def wait(self) -> str:
        """Wait until the process has ended, and return how."""

    def listeners(self) -> Sequence[Listener] | None:
        """Return the addresses on which the processes of the group listen."""
        return None if self.pid is None else listeners_of(self.pid)

    def _signal(self, sent: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, sent)


class ProcessContainer(ProcessGroup):
    """A process of a command.

    Args:
        command: program and arguments; ``{port}`` in an argument becomes the port.
        environment: variables beside those of the platform itself.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__()
        self._command = [argument.replace("{port}", str(self.port)) for argument in command]
        self._environment = {**os.environ, **environment, "PORT": str(self.port), "AGUI_PORT": str(self.port)}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process as the leader of a group of its own."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=STANDARD_ERROR,
                start_new_session=True,
            )
        except OSError as error:
            raise ContainerFailure(f"{self._command[0]} cannot be started: {error.strerror}") from None
        self.pid = self._process.pid
        self.name = f"process {self.pid}"

    async def wait(self) -> str:
        """Wait for the end of the process."""
        return "not started" if self._process is None else exit_reason(await self._process.wait())

    async def terminate(self) -> None:
        """Send SIGTERM to the process alone, as to process 1 of a container."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()


class DockerContainer:
    """A container of an image, through the command ``docker``.

    Args:
        image: name of the image.
        environment: variables of the container.
    """

    def __init__(self, image: str, environment: Mapping[str, str]) -> None:
        self.port = free_port()
        self.name = f"agui-platform-{uuid.uuid4().hex[:12]}"
        self._image = image
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    def run_command(self) -> Sequence[str]:
        """Return the command that runs the container."""
        variables = [part for name, value in self._environment.items() for part in ("--env", f"{name}={value}")]
        published = f"127.0.0.1:{self.port}:{CONTAINER_PORT}"
        return ("docker", "run", "--rm", "--name", self.name, "--publish", published, *variables, self._image)

    async def start(self) -> None:
        """Run the container. The command ends with it."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.run_command(), stdin=asyncio.subprocess.DEVNULL, stdout=STANDARD_ERROR, start_new_session=True
            )
        except OSError as error:
            raise ContainerFailure(f"docker cannot be started: {error.strerror}") from None

    async def wait(self) -> str:
        """Wait for the end of ``docker run``."""
        return "not started" if self._process is None else exit_reason(await self._process.wait())

    async def freeze(self) -> None:
        """Pause the container."""
        await docker("pause", self.name)

    async def thaw(self) -> None:
        """Unpause the container."""
        await docker("unpause", self.name)

    async def terminate(self) -> None:
        """Send SIGTERM to process 1."""
        await docker("kill", "--signal", "TERM", self.name)

    async def kill(self) -> None:
        """Send SIGKILL, and wait for the end of ``docker run``."""
        with suppress(ContainerFailure):  # it may have ended by itself
            await docker("kill", self.name)
        await self.wait()

    def listeners(self) -> Sequence[Listener] | None:
        """Return None: only Docker sees into the container."""
        return None


async def docker(*arguments: str) -> str:
    """Run a command of docker and return its output. Raises ``ContainerFailure`` with what it printed."""
    try:
        process = await asyncio.create_subprocess_exec(
            "docker", *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        raise ContainerFailure(f"docker cannot be started: {error.strerror}") from None
    output, _ = await process.communicate()
    text = output.decode(errors="replace").strip()
    if process.returncode:
        raise ContainerFailure(f"docker {arguments[0]} failed: {text}")
    return text


def exit_reason(status: int) -> str:
    """Return how a process has ended, for people."""
    if status >= 0:
        return f"exited with status {status}"
    return f"ended by {signal.Signals(-status).name}"


def free_port() -> int:
    """Return a port that nobody listens on. Raises ``ContainerFailure`` if none is found."""
    for _ in range(TRIES):
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("0.0.0.0", port))  # noqa: S104 - it must be free on all addresses
            return port
    raise ContainerFailure("no free port was found")
