"""Serve in a process of its own, and start it again when a Python file of the current folder changes.

Rule: this is for development. The files are compared twice a second. Folders of tools, such as ``.venv``, are left out.
A server that could not start is started again after the next change.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

POLL_SECONDS = 0.5

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "venv"}
"""Folders that are not watched, beside those whose names begin with a dot."""


def serve_and_reload(arguments: Sequence[str]) -> int:
    """Run ``agui`` with these arguments until SIGTERM or SIGINT. Return the exit status."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    command = [sys.executable, "-m", "agui_container", *arguments]
    while not stopped.is_set():
        files = modification_times(Path())
        server = subprocess.Popen(command)  # noqa: S603 - this program again
        changed = wait_for_change(files, stopped)
        server.terminate()
        server.wait()
        if changed:
            print(f"reloading: {', '.join(changed)} changed", file=sys.stderr, flush=True)  # noqa: T201 - for the developer
    return 0


def wait_for_change(before: Mapping[str, int], stopped: threading.Event) -> list[str]:
    """Wait until files differ from ``before``. Return their paths, or nothing once ``stopped`` is set."""
    while not stopped.wait(POLL_SECONDS):
        after = modification_times(Path())
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        if changed:
            return changed
    return []


def modification_times(root: Path) -> dict[str, int]:
    """The time of the last change of each Python file below a folder, in nanoseconds, by path."""
    times = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS]
        for name in names:
            if name.endswith(".py"):
                path = Path(folder, name)
                try:
                    times[str(path)] = path.stat().st_mtime_ns
                except OSError:  # removed just now
                    continue
    return times
