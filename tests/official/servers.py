"""A real server process for the tests that need one."""

import sys
from pathlib import Path

from tests.sockets.process import ServerProcess


def serving(python: str | Path = sys.executable, **settings: str) -> ServerProcess:
    """``python -m agui_container serve`` with these ``AGUI_*`` settings, until the block is left."""
    named = {"AGUI_AGENT": "assistant"} | {f"AGUI_{name.upper()}": value for name, value in settings.items()}
    return ServerProcess((str(python), "-m", "agui_container", "serve"), **named)
