"""Time to the first event and the first delta of a new run while the server is busy with others.

Two loads: streams at the speed of a model, and runs whose agents never wait. The probe is a new connection each time.
"""

import math
import time
from collections.abc import Mapping

from bench.client import BlockingConnection
from bench.load import under_load
from bench.options import Extra, Options, Section
from bench.results import Row, compare, figure, percentile
from bench.server import AGENTCORE, OFFICIAL, TRANSPORT, RunningContestant

CONTESTANTS = (TRANSPORT, AGENTCORE, OFFICIAL)
PAUSE = 0.01
GIVEN_UP = 3.0
LOADS: Mapping[str, tuple[int, str]] = {
    "200 streams of 20/s": (200, "paced 100000 0.05"),
    f"20 streams at full speed, within {GIVEN_UP:.0f} s": (20, "deltas 100000000"),
}
MS = 1e3

Times = dict[str, list[float]]


def measure(options: Options) -> Section:
    """Every load, rounds in turn."""
    rows: list[Row] = []
    lines: list[tuple[str, ...]] = []
    for name, (count, text) in LOADS.items():
        first: Times = {contestant.name: [] for contestant in CONTESTANTS}
        tail: Times = {contestant.name: [] for contestant in CONTESTANTS}
        delta: Times = {contestant.name: [] for contestant in CONTESTANTS}
        for number in range(options.load_rounds):
            for contestant in reversed(CONTESTANTS) if number % 2 else CONTESTANTS:
                with RunningContestant(contestant) as server, under_load(server, count, text):
                    firsts, deltas = probes(server, options.probes)
                first[server.name].append(percentile(firsts, 0.5))
                tail[server.name].append(percentile(firsts, 0.99))
                delta[server.name].append(percentile(deltas, 0.99))
        rows += compare(f"first event, {name}: p50", "ms", first) + compare(f"first event, {name}: p99", "ms", tail)
        lines += [(name, who, *(spread(values[who]) for values in (first, tail, delta))) for who in first]
    head = ("load", "", "first event p50", "first event p99", "first delta p99")
    return Section(rows, [Extra("Time to the first event under load", head, lines)])


def probes(server: RunningContestant, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds to the first event and the first delta of so many runs, fewer where each takes seconds."""
    firsts: list[float] = []
    deltas: list[float] = []
    end = time.monotonic() + 2 * GIVEN_UP
    while len(firsts) < count and time.monotonic() < end:
        first, delta = probe(server.port)
        firsts.append(first * MS)
        deltas.append(delta * MS)
        time.sleep(PAUSE)
    return firsts, deltas


def probe(port: int) -> tuple[float, float]:
    """Return the seconds, infinite without an event within ``GIVEN_UP``."""
    began = time.perf_counter()
    try:
        with BlockingConnection(port, GIVEN_UP) as connection:
            connected = time.perf_counter() - began
            answer = connection.run("deltas 1")
    except TimeoutError:
        return math.inf, math.inf
    return connected + answer.first, connected + answer.first_delta


def spread(values: list[float]) -> str:
    """Over rounds."""
    middle, least, most = (figure(value, "ms") for value in (percentile(values, 0.5), min(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"
