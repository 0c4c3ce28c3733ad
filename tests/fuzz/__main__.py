"""A long run of random input through the server's parsers: ``python -m tests.fuzz --bodies 1000000``.

Each body has a seed of its own, so a failure can be repeated with ``--first SEED --bodies 1``. The last line counts the
answers.
"""

import argparse
import sys
import time
from collections import Counter

from tests.fuzz.inputs import random_body, random_message
from tests.fuzz.targets import check_body, check_message

MESSAGES_SHARE = 10
"""One gRPC message for so many bodies."""


def main() -> None:
    """Check as many bodies as the command line says. An exception that is no refusal ends it, after its seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="seed of the first body")
    arguments = parser.parse_args()
    answers, began = Counter[str](), time.monotonic()
    for seed in range(arguments.first, arguments.first + arguments.bodies):
        try:
            answers[f"body: {check_body(random_body(seed)) or 'read'}"] += 1
            if seed % MESSAGES_SHARE == 0:
                answers[f"gRPC message: {check_message(*random_message(seed)) or 'read'}"] += 1
        except BaseException:
            sys.stdout.write(f"seed {seed}\n")
            raise
    counts = ", ".join(f"{answer} {count:,}" for answer, count in sorted(answers.items()))
    sys.stdout.write(f"{arguments.bodies:,} bodies in {time.monotonic() - began:.0f} s: {counts}\n")


if __name__ == "__main__":
    main()
