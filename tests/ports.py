"""Ports for programs that must be told theirs.

Rule: a port lies below those that the kernel chooses, and each process of the suite has ports of its own. So neither an
outgoing connection nor another test can take one between its choice and the program's start.
"""

import contextlib
import itertools
import os
import socket
from pathlib import Path

FIRST = 12_000
PORTS = 1_000
"""Ports of each process of the suite."""

_numbers = itertools.count()


def free_port() -> int:
    """A port of loopback that nobody listens on, and that is given once."""
    first = FIRST + _worker() * PORTS
    for number in itertools.islice(_numbers, PORTS):
        port = first + (os.getpid() + number) % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"all ports from {first} to {first + PORTS - 1} are taken")


def lowest_of_the_kernel() -> int:
    """The lowest port that the kernel chooses by itself."""
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def _worker() -> int:
    """Number of this process among those that run the tests."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
