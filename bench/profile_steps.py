"""CPU time of a streaming server by step, in microseconds per event, from py-spy's samples.

    python -m bench.profile_steps                 runs of 1,000 deltas, as in the scenario ``ready``
    python -m bench.profile_steps "paced 400 0.05"    200 streams of that kind, as in the scenario ``paced``

A sample belongs to the first step below that has a function on the stack, so inner steps come first. A sample without
such a function belongs to the event loop: uvloop, which also writes to sockets by itself, the kernel, and callbacks.
py-spy is in ``.venv/bench``.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench.client import BlockingConnection
from bench.results import table
from bench.server import CLIENT_CORE, PEERS_PYTHON, TRANSPORT, RunningContestant, pin
from bench.stream_client import StreamGroup, many_files

SECONDS = 8
STREAMS = 200
SAMPLES = 400
MICRO = 1e6

STEPS: Sequence[tuple[str, Sequence[str]]] = (
    ("uvicorn and the socket", ("send (uvicorn/", "write_chunk (app/agui_container/server/")),
    ("frame", ("(app/agui_container/protocol/wire/sse_frames", "(app/agui_container/transports/formats")),
    ("fast path of equal deltas", ("(app/agui_container/protocol/delta_template",)),
    ("encode", ("(app/agui_container/protocol/encoder", "plan (<string>")),
    ("validate", ("(app/agui_container/protocol/validator", "(app/agui_container/protocol/grammar")),
    ("build messages", ("(app/agui_container/protocol/conversation/transcript",)),
    ("append", ("append (app/agui_container/engine/log/event_log",)),
    ("expand", ("(app/agui_container/protocol/expander",)),
    ("begin the run", ("_begin (app/agui_container/engine/run/run", "_announce (app/agui_container/engine/run/run")),
    ("end of the run", ("_end (app/agui_container/engine/run/run", "finish (app/agui_container/engine/run/run")),
    ("store the run", ("(app/agui_container/engine/persistence/recorder", "(app/agui_container/stores/")),
    ("between the steps: the pipeline", ("(app/agui_container/engine/run/pipeline",)),
    ("turns", ("(app/agui_container/engine/run/fairness",)),
    ("the agent", ("(bench/script",)),
    ("stream the response", ("(app/agui_container/transports/event_stream",)),
    (
        "flush and notify",
        ("(app/agui_container/engine/log/subscription", "flush (app/agui_container/engine/log/event_log"),
    ),
    ("iterate the agent", ("(app/agui_container/engine/run/run",)),
    ("request: parse, route, start", ("run_asgi", "(uvicorn/", "(sse_starlette/", "(starlette/")),
)


def step_of(stack: str) -> str:
    """Return the step that a sampled stack belongs to."""
    calls = stack.split("Runner.run", 1)[-1]
    return next((step for step, marks in STEPS if any(mark in calls for mark in marks)), "event loop")


async def stream(server: RunningContestant, text: str, profiler: subprocess.Popen[bytes]) -> int:
    """Read paced streams until the profiler has ended, and return the number of deltas."""
    crowd = StreamGroup(server.port)
    await crowd.open(STREAMS, text, 1.0)
    before = crowd.watch.deltas
    while profiler.poll() is None:  # noqa: ASYNC110 - a process has no event here
        await asyncio.sleep(0.05)
    crowd.close()
    return crowd.watch.deltas - before


def repeat(server: RunningContestant, text: str, profiler: subprocess.Popen[bytes]) -> int:
    """Read one run after another until the profiler has ended, and return the number of deltas."""
    count = 0
    with BlockingConnection(server.port) as connection:
        while profiler.poll() is None:
            count += connection.run(text).deltas
    return count


def sample_profile(server: RunningContestant, text: str, path: Path) -> tuple[float, int]:
    """Record samples into ``path``, and return the seconds of CPU and the deltas of that time."""
    command = [str(PEERS_PYTHON.parent / "py-spy"), "record", "-d", str(SECONDS), "-r", str(SAMPLES)]
    command += ["-f", "raw", "-o", str(path), "-p", str(server.pid)]
    cpu = server.cpu()
    profiler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - as above
    paced = text.startswith("paced")
    deltas = uvloop.run(stream(server, text, profiler)) if paced else repeat(server, text, profiler)
    return server.cpu() - cpu, deltas


def main(text: str) -> None:
    """Record samples, add them up by step, and print a table."""
    pin(CLIENT_CORE)
    many_files()
    with tempfile.TemporaryDirectory() as folder, RunningContestant(TRANSPORT) as server:
        time.sleep(1)
        path = Path(folder) / "stacks"
        cpu, deltas = sample_profile(server, text, path)
        shares: Counter[str] = Counter()
        for line in path.read_text().splitlines():
            stack, count = line.rsplit(" ", 1)
            shares[step_of(stack)] += int(count)
    each = cpu / deltas * MICRO
    lines = [
        (step, f"{count / shares.total():.0%}", f"{each * count / shares.total():.2f} µs")
        for step, count in shares.most_common()
    ]
    sys.stdout.write(table(("step", "share", "per event"), [*lines, ("all", "100%", f"{each:.2f} µs")]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ready 1000")
