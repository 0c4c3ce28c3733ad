"""Ports of programs that tests start."""

import socket

import pytest

from tests.ports import PORTS, free_port, lowest_of_the_kernel


def test_a_port_is_below_those_that_the_kernel_chooses() -> None:
    assert free_port() < lowest_of_the_kernel()


def test_no_port_is_given_twice() -> None:
    given = [free_port() for _ in range(20)]
    assert len(set(given)) == len(given)


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    after = free_port() + 1
    with socket.create_server(("127.0.0.1", after)):
        assert free_port() != after


def test_workers_of_the_suite_share_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        ranges.append(free_port() // PORTS)
    assert len(set(ranges)) == len(ranges)
