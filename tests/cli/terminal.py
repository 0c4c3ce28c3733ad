"""A real terminal for tests: keys go in, and the screen that a person would see comes out.

Rule: waits end when the screen shows what is waited for. The outer limit is for a program that hangs.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pyte

ROOT = Path(__file__).parents[2]
PYTHONPATH = f"{ROOT}:{ROOT / 'app'}:{ROOT / 'clients/python/src'}"

WAIT_SECONDS = 120.0
"""Outer limit of one wait."""

READ_SECONDS = 0.2
HISTORY_LINES = 100_000


class EmulatedScreen(pyte.HistoryScreen):
    """A screen that tells the program where its cursor is, as terminals do."""

    answer: Callable[[str], object]

    def write_process_input(self, data: str) -> None:
        """Send an answer to the program."""
        self.answer(data)


class EmulatedTerminal:
    """A program in a terminal.

    Attributes:
        screen: what is on the terminal, with the lines that have scrolled away.
        written: everything that the program has written.
    """

    def __init__(self, arguments: Sequence[str], columns: int, env: Mapping[str, str], folder: Path | None) -> None:
        self.written = ""
        self._rows = 40
        self.screen = EmulatedScreen(columns, self._rows, history=HISTORY_LINES, ratio=0.5)
        self._stream = pyte.Stream(self.screen)
        inherited = {name: value for name, value in os.environ.items() if not _is_of_this_terminal(name)}
        self._child = pexpect.spawn(
            sys.executable,
            ["-m", "agui_container", *arguments],
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
        """The lines that the terminal shows and has shown."""
        gone = ["".join(line[at].data for at in sorted(line)).rstrip() for line in self.screen.history.top]
        return "\n".join([*gone, *(line.rstrip() for line in self.screen.display)])

    def send(self, keys: str) -> None:
        """Type keys."""
        self._child.send(keys)

    def resize(self, columns: int) -> None:
        """Change the width of the terminal."""
        self.screen.resize(self._rows, columns)
        self._child.setwinsize(self._rows, columns)

    def wait_for(self, *texts: str, count: int = 1) -> None:
        """Wait until the terminal shows each text so many times. Fail with the screen if the program ends before."""
        limit = time.monotonic() + WAIT_SECONDS
        while any(self.text.count(text) < count for text in texts):
            is_running = self._read()
            if any(self.text.count(text) < count for text in texts) and (not is_running or time.monotonic() > limit):
                raise AssertionError(f"{texts} did not appear on:\n{self.text}")

    def wait_for_end(self) -> int:
        """Wait until the program ends, and return its exit status."""
        limit = time.monotonic() + WAIT_SECONDS
        while self._read():
            assert time.monotonic() < limit, f"the program did not end:\n{self.text}"
        self._child.close()
        return int(self._child.exitstatus if self._child.exitstatus is not None else -1)

    def _read(self) -> bool:
        """Show what the program has written, for a moment. Return False at its end."""
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
        """Close the window of the terminal, which ends its program, and wait until all its processes have ended."""
        processes = [self._child.pid, *children_of(self._child.pid)]
        self._child.kill(signal.SIGHUP)
        self.wait_for_end()
        limit = time.monotonic() + WAIT_SECONDS
        while any(Path(f"/proc/{process}").exists() for process in processes):
            assert time.monotonic() < limit, f"these processes did not end: {processes}"
            time.sleep(READ_SECONDS)

    def close(self) -> None:
        """End the program and what it has started, whatever they are doing."""
        if self._child.isalive():
            started = children_of(self._child.pid)
            self._child.kill(signal.SIGKILL)
            self._child.wait()
            for process in started:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        self._child.close()


def _is_of_this_terminal(name: str) -> bool:
    """Return True for a variable that would decide about the program's terminal in place of a test.

    GNU readline, which pytest loads, sets ``COLUMNS`` and ``LINES`` for every process that is started from there.
    """
    return name.startswith("AGUI_") or name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


def _obey_hang_up() -> None:
    """Begin with the SIGHUP of a new window. The tests may run under nohup, which a program inherits."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def children_of(process: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@contextmanager
def open_terminal(
    *arguments: str, home: Path, columns: int = 80, folder: Path | None = None, **env: str
) -> Iterator[EmulatedTerminal]:
    """Run ``agui`` in a terminal. Files about servers are in ``home``."""
    own = {"XDG_STATE_HOME": str(home), "TERM": "xterm-256color", "PYTHONPATH": PYTHONPATH, **env}
    terminal = EmulatedTerminal(arguments, columns, own, folder)
    try:
        yield terminal
    finally:
        terminal.close()


@contextmanager
def open_chat(
    *arguments: str, home: Path, columns: int = 80, folder: Path | None = None, **env: str
) -> Iterator[EmulatedTerminal]:
    """Run ``agui chat`` in a terminal, up to its first prompt. The arguments are those of ``open_terminal``."""
    with open_terminal("chat", *arguments, home=home, columns=columns, folder=folder, **env) as terminal:
        terminal.wait_for("\n>")
        yield terminal
