"""The tables of docs/scale.md follow from the unit costs that the page shows."""

import re

from bench.scale.__main__ import CHECKED, HEAD, PACES, STREAMS, demand_line
from bench.scale.demand import UnitCosts, demand
from bench.scale.simulation import TransactionTime
from tests.docs.documents import GUIDES

PAGE = GUIDES["scale"]
UNITS = {"ms": 1e-3, "µs": 1e-6, "B": 1, "KiB": 1024, "MB": 1e6, "cores": 1, "commits/s": 1, "commands/s": 1}


def shown_costs() -> UnitCosts:
    """Return the costs of the page's first table."""
    cells = {row[0]: row[1] for row in PAGE.table("what", "## What a stream costs")}

    def numbers(what: str) -> list[float]:
        found = re.findall(rf"([\d.]+) ({'|'.join(UNITS)})", cells[what])
        return [float(number) * UNITS[unit] for number, unit in found]

    database_event, database_transaction = numbers("PostgreSQL's CPU for an event, and for a transaction")
    memory, cpu, commits, commands = numbers("a replica without streams")
    return UnitCosts(
        event_cpu=numbers("a replica's CPU for an event")[0],
        transaction_cpu=numbers("a replica's CPU for a transaction")[0],
        idle_cpu=cpu,
        database_event_cpu=database_event,
        database_transaction_cpu=database_transaction,
        stream_memory=numbers("memory of an open stream, with its first events")[0],
        process_memory=memory,
        event_wal=numbers("PostgreSQL's log for an event")[0],
        event_bytes=numbers("an event in the database, with its index")[0],
        idle_commits=commits,
        idle_commands=commands,
        time=TransactionTime(*numbers("a transaction")),
    )


def test_the_demand_is_what_the_costs_of_the_page_give() -> None:
    costs = shown_costs()
    for pace, text in zip(PACES, ("All streams at the pace of a model", "People read longer"), strict=True):
        assert PAGE.table(" | ".join(HEAD), text) == [list(demand_line(each, pace, costs)) for each in STREAMS]


def test_the_memory_of_the_tables_includes_that_of_the_processes() -> None:
    process = shown_costs().process_memory
    for text in ("All streams at the pace of a model", "People read longer"):
        for _, replicas, *_, memory in PAGE.table(" | ".join(HEAD), text):
            processes = int(replicas.replace(",", "")) * process
            assert float(memory.removesuffix(" GB").replace(",", "")) * 1e9 >= processes


def test_the_prediction_is_what_the_costs_of_the_page_give() -> None:
    costs = shown_costs()
    columns = []
    for each in (demand(load, costs) for load in CHECKED):
        whole = (each.flow.events, each.rows, each.bus_commands, each.wal / 1e3, each.commits)
        cores, delay = (each.cpu, each.database_cpu), each.flow.wait_p50 * 1e3
        columns.append([*(f"{value:.0f}" for value in whole), *(f"{value:.2f}" for value in cores), f"{delay:.0f}"])
    shown = [[cell.partition(",")[0] for cell in cells] for _, *cells in PAGE.table("in a second")]
    assert shown == [list(row) for row in zip(*columns, strict=True)]
