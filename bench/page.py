"""The page docs/benchmarks.md: how it is measured, on which machine, and the table."""

import platform
import re
import subprocess
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count, getloadavg
from pathlib import Path

from bench.environments import PEERS, ROOT, SHARED

WIDTH = 120
INTRODUCTION = """# Benchmarks

This page is the output of one program, which measures this server beside the servers that people would use instead:

```bash not-here
make bench                          # all of it, in about ten minutes; ARGS=--write writes this page
make bench ARGS=--quick             # two minutes that show that everything works
make bench ARGS="--against ../old"  # another checkout of this server, measured in the same rounds
make bench ARGS="--soak 900"        # fifteen minutes of clients and agents that misbehave
```

It needs two cores and nothing else to do on them. `--only runs,starts` measures some of the scenarios: `runs`,
`assistant`, `paced`, `starts`, `memory`.

## How it is measured

- **Peers as they are published**, in an environment of their own: AWS's `AGUIApp`, plain ASGI that sends bytes encoded
  beforehand, `ag-ui-strands` with a fake model, and Pydantic AI's adapter with a function model. What serves them
  (uvicorn, uvloop, httptools, pydantic and others) has the same versions as ours.
- **Ours as it is shipped**, with the packages of the image alone.
- **The same agent** behind all transports makes each event when it is yielded. The assistant runs on the offline model,
  the frameworks on models that are loops.
- **A core each**: the server is pinned to one, the client to the other. CPU time is the kernel's clock for the server's
  process, memory its resident set. The client counts frames and parses nothing.
- **Rounds in turn**: every contestant has its second in every round, every other round goes backwards, and a ratio is
  taken between figures of the same round. A ratio is the other server's figure by ours: above 1 is better for us.
- **A start** is timed to the end of a first run of one delta, because some servers answer `/ping` before they have
  imported what a run needs.
- **Answers are checked**: a run that lacks a delta stops the measurement.

Read ratios of one run, not figures of two: a virtual core is fast in one minute and slow in another.

## Figures
"""

PROFILE = """## Where a run of one delta spends its time

`python -m bench.profile` prints this table: a sampler in the server notes its stack after each tick of CPU time, and a
sample counts for the part whose code is running or has called a library. Its microseconds include the sampler, so
compare shares, and take the price of a run from the table above.
"""

EXPLANATION = """`AGUIApp` passes a body to the agent, and each event of the agent to the socket. This server writes all
that is ready at once. The larger part of its time buys what `AGUIApp` does not have:

- **run**: it is registered before it begins and lives in two tasks of its own, so it outlives its request, can be
  found, joined and cancelled, and has limits, a deadline and a context for its agent.
- **thread**: it is claimed, merged with what the client sent, and stored with the answer.
- **events**: their order is checked, what is open is closed, and a transcript follows them.
- **event log and response**: events are kept encoded, for readers that come late or come back.
- **log line**: each run leaves one, with its ids, its outcome and its duration.

All of this is paid once for a run. A delta after the first costs less than a third of what it costs in `AGUIApp`.
"""


def page(measured: str, profile: str, paces: Sequence[float]) -> str:
    """Return the page. ``paces`` are the milliseconds of a fixed computation before and after the measurement."""
    return f"{INTRODUCTION}\n{machine(paces)}\n\n{measured}\n\n{PROFILE}\n{profile}\n\n{EXPLANATION}"


def machine(paces: Sequence[float]) -> str:
    """Return a paragraph on the machine and the versions."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    cpu = model[1] if model else platform.machine()
    peers = re.findall(r"^([\w-]+)(?:\[[\w-]+\])?==([\d.]+)", PEERS.read_text(), re.MULTILINE)
    ours = (f"{name} {version(name)}" for name in SHARED)
    text = (
        f"{datetime.now(UTC):%Y-%m-%d}, {commit()}, {cpu_count()} cores of {cpu}, Python {platform.python_version()}, "
        f"load average of the last 15 minutes {getloadavg()[2]:.1f}. {', '.join(ours)}; "
        f"{', '.join(f'{name} {number}' for name, number in peers)}. A fixed piece of work took "
        f"{paces[0]:.0f} ms before and {paces[1]:.0f} ms after the measurement."
    )
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


def commit() -> str:
    """Return the commit of the repository, marked if files have changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - a tool's name
    except (OSError, subprocess.CalledProcessError):
        return "no repository"
    return f"commit {found.strip()}"
