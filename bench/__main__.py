"""The benchmark: what a run, a stream, a start and a process cost here and in the servers of others.

    python -m bench                        all of it, in about ten minutes
    python -m bench --quick                two minutes that show that everything works; its figures mean little
    python -m bench --only runs,starts     some of it
    python -m bench --against ../other     another checkout of this server, measured in the same rounds
    python -m bench --write                write the page docs/benchmarks.md, too
    python -m bench --soak 900             keep a server busy for so many seconds, with clients that misbehave

It needs two cores: the server has one, the client the other. Peers are installed by pip at the first use.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.environments import ROOT
from bench.page import page
from bench.profile import profile_table
from bench.results import Measure, measure_table, table
from bench.scenarios import SCENARIOS, MeasureError, Sizes, pace
from bench.servers import CLIENT_CORE, pin
from bench.soak import soak

QUICK = Sizes(rounds=2, seconds=0.3, streams=60, paced_rounds=1, paced_seconds=2.0, starts=2)
PROFILE_ROUNDS = 20
PAGE = ROOT / "docs" / "benchmarks.md"


def main() -> None:
    """Measure the chosen scenarios, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two minutes, to see that it works")
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, separated by commas")
    parser.add_argument("--against", type=Path, help="the folder of another checkout of this server")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS", help="soak a server in place of all else")
    parser.add_argument("--rate", type=float, default=200.0, help="runs a second of a soak")
    parser.add_argument("--store", default="memory", help="AGUI_STORE of a soak")
    arguments = parser.parse_args()
    if arguments.soak:
        lines, is_good = soak(arguments.soak, arguments.rate, arguments.store)
        sys.stdout.write(f"{table(('what', 'measured'), lines)}\n")
        sys.exit(not is_good)
    pin(CLIENT_CORE)
    sizes = QUICK if arguments.quick else Sizes()
    other = arguments.against.resolve() if arguments.against else None
    before = pace()
    measures = list(measured(arguments.only.split(","), replace(sizes, other=other)))
    profile = profile_table(1, sizes.seconds * PROFILE_ROUNDS)
    text = page(measure_table(measures), profile, (before, pace()))
    sys.stdout.write(text)
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")


def measured(names: list[str], sizes: Sizes) -> Iterator[Measure]:
    """Yield the measures of the scenarios. One that fails costs its own figures only."""
    for name in names:
        sys.stderr.write(f"measuring: {name}\n")
        try:
            yield from SCENARIOS[name](sizes)
        except (MeasureError, OSError) as error:
            sys.stderr.write(f"{name} failed: {error!r}\n")


if __name__ == "__main__":
    main()
