"""Sessions from one warmed process: a server of this package that is imported and built once, and forked per session.

Rules: the warmed process has no event loop and no thread, so a fork of it is whole. It reads ``fork PORT`` lines and
answers each with the fork's process id. A fork begins where AgentCore's snapshot would: with the modules, objects and
random numbers of the warmed process, and with a clock that has gone on.

A snapshot of a microVM also keeps connections and timers of a started event loop. A fork cannot show those.

Source: devguide ``runtime-v2-optimize``.
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from fastapi import FastAPI

from agui_container.platform.containers import STANDARD_ERROR, ContainerFailure, ProcessGroup
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import load_settings

POLL_SECONDS = 0.02
"""Pause between two looks at a fork, which is no child of the platform."""


class WarmedProcess:
    """The process that is forked for each session.

    Args:
        agent: ``module:attribute``, or None for the agent of the settings.
        environment: variables beside those of the platform itself.
    """

    def __init__(self, agent: str | None, environment: Mapping[str, str]) -> None:
        self._command = [sys.executable, "-m", "agui_container.platform.snapshot", *([agent] if agent else [])]
        self._environment = {**os.environ, **environment}
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def fork(self, port: int) -> int:
        """Return the process id of a new fork that serves on this port. The first one starts the warmed process.

        Raises:
            ContainerFailure: the warmed process has ended, for example because its settings are wrong.
        """
        async with self._lock:
            if self._process is None:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env=self._environment,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
            process = self._process
            if process.stdin is None or process.stdout is None:
                raise ContainerFailure("the warmed process has no pipes")
            with suppress(ConnectionError):
                process.stdin.write(f"fork {port}\n".encode())
                await process.stdin.drain()
            answer = await process.stdout.readline()
        if not answer:
            raise ContainerFailure(f"the warmed process exited with status {await process.wait()}")
        return int(answer)

    async def aclose(self) -> None:
        """End the warmed process. Its forks end by themselves."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()


class ForkedContainer(ProcessGroup):
    """A fork of the warmed process.

    Args:
        warmed: the warmed process.
    """

    def __init__(self, warmed: WarmedProcess) -> None:
        super().__init__()
        self._warmed = warmed

    async def start(self) -> None:
        """Fork the warmed process. Raises ``ContainerFailure``."""
        self.pid = await self._warmed.fork(self.port)
        self.name = f"fork {self.pid}"

    async def wait(self) -> str:
        """Wait until the process is gone."""
        while self.pid is not None and is_alive(self.pid):  # noqa: ASYNC110 - nothing tells the end of a grandchild
            await asyncio.sleep(POLL_SECONDS)
        return "ended"

    async def terminate(self) -> None:
        """Send SIGTERM to the fork."""
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)


def is_alive(pid: int) -> bool:
    """Return True if there is such a process. The warmed process reaps its forks at once."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- in the warmed process --------------------------------------------------------------------------------------------


def serve_forks(agent: str | None) -> int:
    """Build the server, then fork for each line of standard input. Return the exit status."""
    from agui_container.agents.as_agent import AgentLoadError  # noqa: PLC0415 - only this process serves
    from agui_container.logging import configure_logging  # noqa: PLC0415
    from agui_container.main import create_app  # noqa: PLC0415
    from agui_container.server.protocol_classes import without_plain_grpc  # noqa: PLC0415
    from agui_container.server.run import print_start_error  # noqa: PLC0415
    from agui_container.tools.loader import ToolLoadError  # noqa: PLC0415

    try:
        settings = load_settings()
        configure_logging(settings.log_format, settings.log_level)
        app = create_app(agent, without_plain_grpc(settings))
    except (SettingsError, AgentLoadError, ToolLoadError) as error:
        print_start_error(str(error))
        return 2
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the forks
    for line in sys.stdin:
        warmed = random.getstate()
        pid = os.fork()
        if pid == 0:
            random.setstate(warmed)  # Python seeds anew after a fork, and a snapshot does not
            return serve_as_fork(app, settings.model_copy(update={"port": int(line.removeprefix("fork "))}))
        os.setpgid(pid, pid)
        print(pid, flush=True)  # noqa: T201 - the answer to the platform
    return 0


def serve_as_fork(app: FastAPI, settings: Settings) -> int:
    """Serve until SIGTERM, with pipes of its own. Return the exit status."""
    from agui_container.server.connections import ConnectionLimit, raise_descriptor_limit  # noqa: PLC0415
    from agui_container.server.run import Server, uvicorn_config  # noqa: PLC0415

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    os.dup2(STANDARD_ERROR, sys.stdout.fileno())
    descriptors = raise_descriptor_limit()
    server = Server(
        uvicorn_config(app, settings, descriptors), app.state.service, ConnectionLimit(descriptors), settings
    )
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(serve_forks(sys.argv[1] if sys.argv[1:] else None))
