"""``make bench``: every scenario, one table of ratios, and the other tables.

    python -m bench                    all of it, under ten minutes
    python -m bench --quick            two minutes that show that everything works; its figures mean little
    python -m bench --only ready,cold  some of it

Needs two cores: the server has one, the client the other. ``bench/ping.py`` and ``bench/openai_client.py`` are
measurements of their own, each a program.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from bench.machine import describe, pace
from bench.options import QUICK, MeasureError, Options, Scenario, Section
from bench.results import HEAD, table
from bench.scenarios import (
    cold_start,
    first_event,
    growth,
    grpc_streams,
    paced,
    parallel,
    sockets,
    steps,
    throughput,
    visit,
)
from bench.server import CLIENT_CORE, pin

SCENARIOS: Mapping[str, Scenario] = {
    "ready": throughput.ready,
    "fresh": throughput.fresh,
    "assistant": throughput.assistant,
    "short": throughput.short,
    "paced": paced.measure,
    "abreast": parallel.measure,
    "sockets": sockets.measure,
    "grpc": grpc_streams.measure,
    "cold": cold_start.measure,
    "first": first_event.measure,
    "growth": growth.measure,
    "steps": steps.measure,
    "visit": visit.measure,
}


def main() -> None:
    """Measure the chosen scenarios, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two minutes, to see that it works")
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, separated by commas")
    arguments = parser.parse_args()
    options = QUICK if arguments.quick else Options()
    pin(CLIENT_CORE)
    began = time.monotonic()
    found, paces = list[Section | None](), [pace()]
    for name in arguments.only.split(","):
        found.append(run(name, options))
        paces.append(pace())
    sys.stdout.write(report([section for section in found if section], time.monotonic() - began, paces))
    sys.exit(None in found)


def run(name: str, options: Options) -> Section | None:
    """One scenario, named while it runs. One that fails costs its own figures only."""
    sys.stderr.write(f"measuring: {name}\n")
    try:
        return SCENARIOS[name](options)
    except (MeasureError, OSError) as error:
        sys.stderr.write(f"{name} failed: {error!r}\n")
        return None


def report(sections: list[Section], seconds: float, paces: Sequence[float]) -> str:
    """Markdown: the machine, the ratios, the rest."""
    rows = [row.cells() for section in sections for row in section.rows]
    parts = [describe(seconds, paces), *([table(HEAD, rows)] if rows else [])]
    for extra in (extra for section in sections for extra in section.extras):
        parts += [f"**{extra.title}**", table(extra.head, extra.lines)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
