"""A real terminal for tests: keys go in, and the screen that a person would see comes out.

Rule: waits end when the screen shows what is waited for. The outer limit is for a program that hangs.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pyte

ROOT = Path(__file__).parents[2]
PYTHONPATH = f"{ROOT}:{ROOT / 'app'}:{ROOT / 'clients/python/src'}"

WAIT_SECONDS = 120.0

READ_SECONDS = 0.2
HISTORY_LINES = 100_000


class EmulatedScreen(pyte.HistoryScreen):
    answer: Callable[[str], object]

    def write_process_input(self, data: str) -> None:
        self.answer(data)


class EmulatedTerminal:
    def __init__(self, command: Sequence[str], columns: int, env: Mapping[str, str], folder: Path | None) -> None:
        self.written = ""
        self._rows = 40
        self.screen = EmulatedScreen(columns, self._rows, history=HISTORY_LINES, ratio=0.5)
        self._stream = pyte.Stream(self.screen)
        inherited = {name: value for name, value in os.environ.items() if not _is_of_this_terminal(name)}
        self._child = pexpect.spawn(
            command[0],
            list(command[1:]),
            cwd=folder and str(folder),
            env={**inherited, **env},
            dimensions=(self._rows, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=None,
            preexec_fn=_obey_hang_up,
        )
        self.screen.answer = self._child.send

    @property
    def text(self) -> str:
        gone = ["".join(line[at].data for at in sorted(line)).rstrip() for line in self.screen.history.top]
        return "\n".join([*gone, *(line.rstrip() for line in self.screen.display)])

    def send(self, keys: str) -> None:
        self._child.send(keys)

    def wait_for(self, *texts: str, count: int = 1) -> None:
        limit = time.monotonic() + WAIT_SECONDS
        while any(self.text.count(text) < count for text in texts):
            is_running = self._read()
            if any(self.text.count(text) < count for text in texts) and (not is_running or time.monotonic() > limit):
                raise AssertionError(f"{texts} did not appear on:\n{self.text}")

    def wait_for_end(self) -> int:
        limit = time.monotonic() + WAIT_SECONDS
        while self._read():
            assert time.monotonic() < limit, f"the program did not end:\n{self.text}"
        self._child.close()
        return int(self._child.exitstatus if self._child.exitstatus is not None else -1)

    def _read(self) -> bool:
        try:
            text = self._child.read_nonblocking(65536, READ_SECONDS)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.written += text
        self._stream.feed(text)
        return True

    def hang_up(self) -> None:
        self._child.kill(signal.SIGHUP)
        self.wait_for_end()

    def close(self) -> None:
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.wait()
        self._child.close()


def _is_of_this_terminal(name: str) -> bool:
    """Return True for a variable that would decide about the program's terminal in place of a test.

    GNU readline, which pytest loads, sets ``COLUMNS`` and ``LINES`` for every process that is started from there.
    """
    return name.startswith("AGUI_") or name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


def _obey_hang_up() -> None:
    """Begin with the SIGHUP of a new window. The tests may run under nohup, which a program inherits."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def open_terminal(
    *arguments: str, home: Path, columns: int = 80, folder: Path | None = None, **env: str
) -> Iterator[EmulatedTerminal]:
    own = {"XDG_STATE_HOME": str(home), "TERM": "xterm-256color", "PYTHONPATH": PYTHONPATH, **env}
    terminal = EmulatedTerminal([sys.executable, "-m", "agui_container", *arguments], columns, own, folder)
    try:
        yield terminal
    finally:
        terminal.close()


@contextmanager
def open_chat(
    *arguments: str, home: Path, columns: int = 80, folder: Path | None = None, **env: str
) -> Iterator[EmulatedTerminal]:
    with open_terminal("chat", *arguments, home=home, columns=columns, folder=folder, **env) as terminal:
        terminal.wait_for("\n>")
        yield terminal
