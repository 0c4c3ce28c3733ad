"""The calls that the server executes for one run of one delta: the price of a run, by module.

    python -m bench.run_calls                a few seconds

The application serves runs over one kept-alive loopback connection in this process, and ``sys.setprofile`` counts the
calls of Python and C functions. A generator or coroutine that is resumed counts as a call. The run with the fewest
calls counts, because timers and a second wait for the socket add some to others. ``tests/speed`` limits the calls of
this project's own functions. No test depends on this program.
"""

import asyncio
import socket
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import uvloop

import agui_container
from bench.client import END, post, run_body
from bench.path import serving
from bench.results import table

RUNS = 10
"""The first runs fill caches."""

TURNS = 10
"""Turns of the loop after the end of the response, in which the run is stored and its task ends."""

PACKAGE = str(Path(agui_container.__file__ or "").parent)
OUR_LOOP = (__file__, uvloop.__file__)


class CallCounter:
    """Counts calls by the file of the calling or called Python function.

    Attributes:
        python, c: calls of Python functions and of C functions.
    """

    def __init__(self) -> None:
        self.python, self.c = Counter[str](), Counter[str]()

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Handle one event of ``sys.setprofile``."""
        path = frame.f_code.co_filename
        if path not in OUR_LOOP and frame.f_code is not asyncio.sleep.__code__:
            if event == "call":
                self.python[path] += 1
            elif event == "c_call":
                self.c[path] += 1


async def count_calls() -> list[CallCounter]:
    """Count the calls of each of some runs."""
    counters = [CallCounter() for _ in range(RUNS)]
    async with serving() as port:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(0)
            for counter in counters:
                connection.sendall(post(run_body("deltas 1")))
                sys.setprofile(counter.profile)
                try:
                    await read_to_end(connection)
                finally:
                    sys.setprofile(None)
    return counters


async def read_to_end(connection: socket.socket) -> None:
    """Read a response to its end, and let the server finish."""
    tail = b""
    while not tail.endswith(END):
        try:
            tail = (tail + connection.recv(1 << 16))[-len(END) :]
        except BlockingIOError:
            await asyncio.sleep(0)
    for _ in range(TURNS):
        await asyncio.sleep(0)


def main() -> None:
    """Print the calls by module, and the sums."""
    counter = min(uvloop.run(count_calls()), key=lambda each: each.python.total() + each.c.total())
    together = counter.python + counter.c
    rows = [(name(path), f"{counter.python[path]}", f"{counter.c[path]}") for path, _ in together.most_common()]
    own = sum(calls for path, calls in counter.python.items() if path.startswith(PACKAGE))
    sys.stdout.write(table(("module", "Python", "C"), rows) + "\n")
    sys.stdout.write(f"{together.total()} calls, {counter.python.total()} of Python functions, {own} of our own\n")


def name(path: str) -> str:
    """Shorten the path of a module."""
    for root in (PACKAGE, *sys.path):
        if root and path.startswith(root):
            return path.removeprefix(root).lstrip("/")
    return path


if __name__ == "__main__":
    main()
