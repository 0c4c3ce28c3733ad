"""Ports for programs that must be told theirs.

Rule: a port lies below those that the kernel chooses, and each process of the suite has ports of its own. So neither an
outgoing connection nor another test can take one between its choice and the program's start.
"""

import contextlib
import itertools
import os
import socket

FIRST = 12_000
PORTS = 1_000

_numbers = itertools.count()


def free_port() -> int:
    first = FIRST + _worker() * PORTS
    for number in itertools.islice(_numbers, PORTS):
        port = first + (os.getpid() + number) % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"all ports from {first} to {first + PORTS - 1} are taken")


def _worker() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
