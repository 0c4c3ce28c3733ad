"""The profile of a run: which part of a server its CPU time goes to.

    python -m bench.profile                   a run of one delta, here and in AWS's AGUIApp
    python -m bench.profile --deltas 1000     a longer one
    python -m bench.profile --seconds 60      more samples

A sampler inside the server notes the stack in the main thread after each tick of CPU time (``bench/sampler``). A sample
counts for the innermost file that belongs to a part, so a library counts for the part that calls it.

Rule: shares of one run of this program can be compared. Its microseconds include the sampler.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.client import BlockingConnection
from bench.results import MICRO, table
from bench.servers import CLIENT_CORE, Contestant, RunningServer, ours, peer, pin

SAMPLER = Path(__file__).parent / "sampler"
WARM_RUNS = 300
WRITE_SECONDS = 10.0

LOOP = "event loop, sockets, garbage collection"
PARTS: Mapping[str, Sequence[str]] = {
    "HTTP server": ("/uvicorn/protocols/", "agui_container/server/"),
    "middleware, caller, path": (
        "/fastapi/",
        "/starlette/",
        "agui_container/web/application",
        "agui_container/web/authentication",
        "agui_container/web/browser_policy",
        "agui_container/web/caller",
        "agui_container/ports/auth",
    ),
    "input: read, parse, validate": (
        "agui_container/web/requests",
        "agui_container/protocol/client_input",
        "agui_container/protocol/parser",
        "agui_container/protocol/strict_json",
    ),
    "run: admission, context, tasks, end": (
        "agui_container/web/invocations",
        "agui_container/agents/",
        "agui_container/engine/",
        "agui_container/ports/",
        "agui_container/run/life",
        "agui_container/run/run.py",
        "agui_container/threads",
    ),
    "thread: claim, merge, store": (
        "agui_container/conversation/",
        "agui_container/engine/inputs",
        "agui_container/run/recorder",
        "agui_container/stores/",
    ),
    "events: order, encoding, transcript": ("agui_container/protocol/", "agui_container/run/", "/agui_core/"),
    "event log and response": (
        "agui_container/run/event_log",
        "agui_container/web/event_stream",
        "agui_container/web/formats",
    ),
    "log line": ("/logging/", "agui_container/logging", "agui_container/log_values"),
    "metrics and spans": ("/opentelemetry/", "agui_container/telemetry/"),
    "agent, which makes the events": ("bench/agents",),
    "SDK of AWS, encoder of AG-UI": ("/bedrock_agentcore/", "/ag_ui/"),
}
"""Parts by what their files have in their paths. The longest match counts."""


def part_of(files: Sequence[str]) -> str:
    """Return the part of a stack: that of its innermost file which has one. The start of the process has none."""
    return next((found for found in map(part_of_file, files) if found), LOOP)


def part_of_file(path: str) -> str:
    if path.endswith("agui_container/server/run.py"):  # it calls the loop
        return ""
    found = [(len(mark), part) for part, marks in PARTS.items() for mark in marks if mark in path]
    return max(found)[1] if found else ""


def sampled(contestant: Contestant, path: Path) -> Contestant:
    """Return the contestant with the sampler, which writes to ``path``."""
    source = os.pathsep.join((str(SAMPLER), contestant.environment["PYTHONPATH"]))
    return replace(contestant, environment={**contestant.environment, "PYTHONPATH": source, "SAMPLES": str(path)})


def profile(contestant: Contestant, deltas: int, seconds: float) -> tuple[float, Counter[str]]:
    """Return the microseconds of CPU per run, and the samples by part."""
    text, count = f"{contestant.word} {deltas}", 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples"
        with RunningServer(sampled(contestant, path)) as server, BlockingConnection(server.port) as connection:
            for _ in range(WARM_RUNS):
                connection.run(text)
            os.kill(server.pid, signal.SIGUSR1)
            cpu, began = server.cpu(), time.perf_counter()
            while time.perf_counter() - began < seconds:
                connection.run(text)
                count += 1
            used = server.cpu() - cpu
            os.kill(server.pid, signal.SIGUSR2)
            samples: Counter[str] = Counter()
            for files, number in read_samples(path):
                samples[part_of(files)] += number
    return used / count * MICRO, samples


def read_samples(path: Path) -> Iterator[tuple[Sequence[str], int]]:
    deadline = time.monotonic() + WRITE_SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            raise SystemExit("the server wrote no samples")
        time.sleep(0.01)
    yield from json.loads(path.read_text(encoding="utf-8"))


def rows(profiles: Sequence[tuple[float, Counter[str]]]) -> Iterator[list[str]]:
    """Yield a line for each part, and their sums."""
    for part in (LOOP, *PARTS):
        if any(samples[part] for _, samples in profiles):
            yield [part, *(cell(cost, samples[part], samples.total()) for cost, samples in profiles)]
    yield ["together", *(f"{cost:.0f} µs of {samples.total()} samples" for cost, samples in profiles)]


def cell(cost: float, count: int, total: int) -> str:
    return f"{cost * count / total:.0f} µs, {count / total:.0%}" if count else ""


def profile_table(deltas: int, seconds: float) -> str:
    """Return the table of this server and AWS's."""
    contestants = [ours(), peer("AGUIApp", "agentcore")]
    profiles = [profile(contestant, deltas, seconds) for contestant in contestants]
    return table(("part", *(contestant.name for contestant in contestants)), rows(profiles))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deltas", type=int, default=1, help="deltas of the run")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds of runs on each server")
    given = parser.parse_args()
    pin(CLIENT_CORE)
    sys.stdout.write(f"{profile_table(given.deltas, given.seconds)}\n")


if __name__ == "__main__":
    main()
