"""A real server process for the tests that need one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.sockets.process import ServerProcess


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Port of the server."""

    port: int

    @property
    def invocations(self) -> str:
        """URL of runs over HTTP."""
        return f"http://127.0.0.1:{self.port}/invocations"

    @property
    def ws(self) -> str:
        """URL of runs over a WebSocket."""
        return f"ws://127.0.0.1:{self.port}/ws"


@contextmanager
def serving(python: str | Path = sys.executable, **settings: str) -> Iterator[ServerAddress]:
    """``python -m agui_container serve`` with these ``AGUI_*`` settings, until the block is left."""
    named = {"AGUI_AGENT": "assistant"} | {f"AGUI_{name.upper()}": value for name, value in settings.items()}
    with ServerProcess((str(python), "-m", "agui_container", "serve"), **named) as server:
        yield ServerAddress(server.port)
