"""A program ``docker`` that does nothing, writes down its calls, and fails where a test wants it to."""

from pathlib import Path

PROGRAM = """#!/bin/sh
echo "$*" >>"{folder}/calls"
case "$1" in login | buildx) [ "$2" = version ] || cat >/dev/null ;; esac
case "$*" in $(cat "{folder}/failing")) echo "planted: $1 gave up" >&2; exit 1 ;; esac
"""


class FakeDocker:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "docker").write_text(PROGRAM.format(folder=folder))
        (folder / "docker").chmod(0o755)
        self.fail("")

    def fail(self, pattern: str) -> None:
        """Let calls fail whose arguments are like a pattern of the shell. An empty one is like none."""
        (self.folder / "failing").write_text(pattern)

    def take_calls(self) -> list[str]:
        file = self.folder / "calls"
        calls = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return calls
