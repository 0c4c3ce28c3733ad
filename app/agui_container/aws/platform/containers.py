"""Containers of sessions: a process of a command each, and the answers to its pings.

Rule: a container is told its port by environment, gets signals, and is gone when ``kill`` returns. Its output goes to
standard error of the platform, because standard output is for reports. Any ping with status 200 is healthy, and a
status that AgentCore does not know is not busy.
"""

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import httpx

PORTS = range(20_000, 30_000)
"""Ports of containers. Kernels choose higher ones for outgoing connections, so none is taken before its container."""

STANDARD_ERROR = 2
HEALTHY, BUSY = "Healthy", "HealthyBusy"
ANOTHER_ADDRESS = "127.0.0.2"
"""On Linux an address of this machine that a server on 127.0.0.1 does not listen on."""


class ProcessContainer:
    """A process that leads a group, with all that it starts. In its arguments ``{port}`` is the port."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.port = free_port()
        self._command = [argument.replace("{port}", str(self.port)) for argument in command]
        self._environment = {**os.environ, **environment, "PORT": str(self.port), "AGUI_PORT": str(self.port)}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the process. Raises ``OSError``."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=STANDARD_ERROR,
            start_new_session=True,
        )

    async def wait(self) -> str:
        if self._process is None:
            return "was not started"
        status = await self._process.wait()
        return f"exited with status {status}" if status >= 0 else f"ended by {signal.Signals(-status).name}"

    def freeze(self) -> None:
        self._signal_group(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the group continue where it was."""
        self._signal_group(signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM to the process alone, as to process 1 of a container."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    async def kill(self) -> None:
        """Send SIGKILL to the group, and wait until the process is gone."""
        self._signal_group(signal.SIGKILL)
        await self.wait()

    async def is_on_all_addresses(self) -> bool | None:
        """Return True if the port is open on more than one address, or None where that cannot be seen."""
        if sys.platform != "linux":
            return None
        try:
            _, writer = await asyncio.open_connection(ANOTHER_ADDRESS, self.port)
        except OSError:
            return False
        writer.close()
        return True

    def _signal_group(self, sent: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sent)


ContainerFactory = Callable[[], ProcessContainer]


def free_port() -> int:
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("0.0.0.0", port))  # noqa: S104 - it must be free on all addresses
            return port


# --- requests ---------------------------------------------------------------------------------------------------------


def container_client() -> httpx.AsyncClient:
    """Return the client of all containers, which are on loopback. The caller limits the time.

    A request has a connection of its own, because none would outlive a freeze.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(timeout=None, limits=limits, verify=False, trust_env=False)  # noqa: S113, S501 - see above


@dataclass(frozen=True, slots=True)
class PingAnswer:
    """One answer, or the reason (``failure``) why there is none with status 200. The fields are as they came."""

    failure: str | None = None
    content_type: str = ""
    status: object = None
    changed_at: object = None

    @property
    def is_busy(self) -> bool:
        return self.failure is None and self.status == BUSY

    @property
    def holds_session(self) -> bool:
        """True if the answer keeps the session, whatever its idle time is."""
        return self.is_busy and self.changed_at is not None


async def send_ping(http: httpx.AsyncClient, url: str, seconds: float) -> PingAnswer:
    try:
        answer = await http.get(f"{url}/ping", timeout=seconds)
    except httpx.TimeoutException:
        return PingAnswer(f"no answer within {seconds:g} s")
    except httpx.HTTPError as error:
        return PingAnswer(f"{type(error).__name__}: {error}")
    if answer.status_code != httpx.codes.OK:
        return PingAnswer(f"answered {answer.status_code}")
    fields: object = None
    with suppress(ValueError):
        fields = answer.json()
    content_type = answer.headers.get("content-type", "").partition(";")[0]
    known = fields if isinstance(fields, dict) else {}
    return PingAnswer(None, content_type, known.get("status"), known.get("time_of_last_update"))
