"""From the start of the process to the first healthy ``/ping``: seconds, CPU, and how many modules were imported.

And then the first run of the process, up to its first event: AgentCore starts one for each session.

Each as its maker starts it: ``python -m agui_container serve``, and a module that calls ``AGUIApp.run``. Bytecode is
compiled beforehand, as in an image.
"""

import compileall
import statistics
import time
from http.client import HTTPConnection, HTTPException

from bench.client import BlockingConnection
from bench.options import Extra, MeasureError, Options, Section
from bench.results import compare
from bench.server import ASSISTANT, PEERS_PYTHON, ROOT, Contestant, RunningContestant

PUBLISHED = Contestant("AGUIApp", (str(PEERS_PYTHON), "-m", "bench.peers.agentcore"), {"PORT": "{port}"})
CONTESTANTS = (ASSISTANT, PUBLISHED)
FIRST_RUN = {ASSISTANT.name: "stream 1", PUBLISHED.name: "deltas 1"}
"""A run of one delta, as the agent of each takes it."""
DEADLINE = 30.0
IMPORT = "import time:"
MS = 1e3


def measure(options: Options) -> Section:
    """Starts in turn, after one of each that only warms the disk cache."""
    for folder in (
        "app/agui_container",
        "bench",
    ):  # packages have their bytecode from pip; ours is not written where that is forbidden
        compileall.compile_dir(ROOT / folder, quiet=1)
    clock: dict[str, list[float]] = {contestant.name: [] for contestant in CONTESTANTS}
    cpu: dict[str, list[float]] = {contestant.name: [] for contestant in CONTESTANTS}
    first: dict[str, list[float]] = {contestant.name: [] for contestant in CONTESTANTS}
    for number in range(-1, options.starts):
        for contestant in reversed(CONTESTANTS) if number % 2 else CONTESTANTS:
            waited, used, event = measure_start(contestant)
            if number >= 0:
                clock[contestant.name].append(waited)
                cpu[contestant.name].append(used)
                first[contestant.name].append(event * MS)
    rows = compare("cold start: time to a healthy /ping", "s", clock, {PUBLISHED.name: 1.0})
    rows += compare("cold start: CPU to a healthy /ping", "s", cpu)
    rows += compare("the first run of a process: time to its first event", "ms", first)
    lines = [
        (contestant.name, str(modules(contestant)), f"{statistics.median(clock[contestant.name]):.2f} s")
        for contestant in CONTESTANTS
    ]
    return Section(rows, [Extra("Cold start", ("", "modules imported", "time to a healthy /ping"), lines)])


def measure_start(contestant: Contestant) -> tuple[float, float, float]:
    """Return the seconds and CPU seconds until a server is healthy, and those to the first event of its first run."""
    server = RunningContestant(contestant)
    try:
        wait_until_healthy(server)
        waited, used = time.perf_counter() - server.began, server.cpu()
        with BlockingConnection(server.port) as connection:
            return waited, used, connection.run(FIRST_RUN[contestant.name]).first
    finally:
        server.__exit__()


def modules(contestant: Contestant) -> int:
    """Counted in the interpreter's own report, in a start that is not timed."""
    server = RunningContestant(contestant, ("-X", "importtime"))
    try:
        wait_until_healthy(server)
        return server.read_output().count(IMPORT)
    finally:
        server.__exit__()


def wait_until_healthy(server: RunningContestant) -> None:
    """Ask every two milliseconds."""
    deadline = time.monotonic() + DEADLINE
    while not healthy(server.port):
        if time.monotonic() > deadline:
            raise MeasureError(f"{server.name} is not healthy:\n{server.read_output()}")
        time.sleep(0.002)


def healthy(port: int) -> bool:
    """Return True if ``/ping`` answers 200."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == 200  # noqa: PLR2004 - OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
