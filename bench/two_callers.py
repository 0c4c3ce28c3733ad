"""First event of a second caller, and ``GET /ping``, while a first caller does its worst.

    PYTHONPATH=app python -m bench.two_callers              all attacks, about four minutes
    PYTHONPATH=app python -m bench.two_callers abandoned    one of them

Starts a server of its own on a free port for each attack, with 2,000 open files if the attack is on bytes and
connections. The attacker is a process of its own. Neither caller has an identity, so only the limits of the process
count. The second caller asks for a short run on a new connection every 50 ms, and then for a ping on another one. The
aims are 250 ms to the first event and 50 ms for a ping.
"""

import argparse
import json
import logging
import multiprocessing
import resource
import socket
import sys
import time
from dataclasses import dataclass

from bench.attacks import ATTACKS, BYTES, DESCRIPTORS, request
from bench.large_reads import PREPARATION_SECONDS, READS
from bench.ping import ping, server

WARM_SECONDS, MEASURED_SECONDS = 3.0, 6.0
INTERVAL = 0.05
POLICY = json.dumps([{"tool_pattern": "calculate", "policy": "ask"}])


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds to the first events and of the pings, and the answers that were no run."""

    first_events: list[float]
    pings: list[float]
    refusals: list[str]


def first_event(port: int) -> tuple[float, str | None]:
    """Seconds to the first event of a short run, and the answer if it is none."""
    data = request("second", "hi")
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        answer = b""
        while b"\n\n" not in answer.partition(b"\r\n\r\n")[2] and (piece := connection.recv(1 << 16)):
            answer += piece
        seconds = time.perf_counter() - began
    return seconds, None if b"RUN_STARTED" in answer else answer.decode(errors="replace")


def measure(port: int) -> Figures:
    """Ask and ping, one after the other, for a while."""
    figures, end = Figures([], [], []), time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < end:
        seconds, refusal = first_event(port)
        figures.first_events.append(seconds * 1000)
        if refusal is not None:
            figures.refusals.append(refusal)
        figures.pings.append(ping(port)[0] * 1000)
        time.sleep(INTERVAL)
    return figures


def report(title: str, figures: Figures) -> None:
    """Print one line."""
    cells = []
    for name, times in (("first event", figures.first_events), ("/ping", figures.pings)):
        ordered = sorted(times)
        cells.append(f"{name} p50 {ordered[len(ordered) // 2]:.1f} ms, max {ordered[-1]:.1f} ms")
    sys.stdout.write(f"{title}: {'; '.join(cells)}; {len(figures.refusals)} of {len(figures.first_events)} refused\n")
    if figures.refusals:
        sys.stdout.write(f"{figures.refusals[0][-300:]}\n")


def main() -> None:
    """Attack and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"of {', '.join(ATTACKS)}; without one all")
    logging.disable()  # the attacker's client logs each socket that the server closes
    for name in parser.parse_args().attacks or ATTACKS:
        if ATTACKS[name] in BYTES:
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))  # of the other processes, too
        with server("assistant", AGUI_TOOL_POLICY=POLICY) as port:
            attacker = multiprocessing.Process(target=ATTACKS[name], args=(port,), daemon=True)
            attacker.start()
            time.sleep(PREPARATION_SECONDS if ATTACKS[name] in READS else WARM_SECONDS)
            try:
                report(name, measure(port))
            finally:
                attacker.kill()
                attacker.join()


if __name__ == "__main__":
    main()
