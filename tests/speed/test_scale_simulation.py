"""The simulation of many streams follows the code: a window for each run, and one batch at a time for each replica."""

import pytest

from bench.scale.demand import UnitCosts, demand, replicas_for
from bench.scale.simulation import StreamLoad, TransactionTime, simulate

TIME = TransactionTime(0.002, 0.0)
COSTS = UnitCosts(
    event_cpu=100e-6,
    transaction_cpu=1e-3,
    idle_cpu=0.0,
    database_event_cpu=20e-6,
    database_transaction_cpu=200e-6,
    stream_memory=42_000,
    process_memory=100e6,
    event_wal=300,
    event_bytes=200,
    idle_commits=1.0,
    idle_commands=0.5,
    time=TIME,
)


def test_a_lone_stream_writes_each_event_in_a_transaction_of_its_own() -> None:
    flow = simulate(StreamLoad(1, pace=10.0), TIME)
    assert flow.transactions == flow.events == pytest.approx(10.0, abs=0.5)
    assert flow.wait_p50 == pytest.approx(0.007)  # the window and the transaction


def test_many_streams_share_transactions() -> None:
    flow = simulate(StreamLoad(200), TIME)
    assert flow.events == pytest.approx(4_000, rel=0.01)
    assert flow.transactions <= 1 / TIME.fixed
    assert flow.transactions < flow.events / 4


def test_a_slow_transaction_makes_larger_batches_and_not_fewer_events() -> None:
    fast, slow = (simulate(StreamLoad(100), TransactionTime(fixed, 0.0)) for fixed in (0.001, 0.02))
    assert slow.events == pytest.approx(fast.events, rel=0.02)
    assert slow.transactions < fast.transactions / 5
    assert slow.wait_p50 > fast.wait_p50


def test_replicas_write_more_and_smaller_batches_for_the_same_streams() -> None:
    one, four = (demand(StreamLoad(200, replicas), COSTS) for replicas in (1, 4))
    assert four.flow.events == pytest.approx(one.flow.events, rel=0.02)
    assert four.commits > one.commits
    assert four.cpu > one.cpu


def test_the_number_of_replicas_is_the_least_that_is_not_too_busy() -> None:
    replicas = replicas_for(1_000, 5.0, COSTS)
    assert demand(StreamLoad(round(1_000 / replicas), 1, 5.0), COSTS).cpu <= 0.7
    assert demand(StreamLoad(round(1_000 / (replicas - 1)), 1, 5.0), COSTS).cpu > 0.6
