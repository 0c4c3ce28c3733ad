"""Turns of tests: which ones run side by side."""

import fcntl

import pytest


def ask_for_a_turn(config: pytest.Config) -> None:
    """Ask for what a test needs that runs beside others. Raise ``BlockingIOError`` if it would have to wait."""
    assert config.cache is not None
    with (config.cache.mkdir("alone") / "running").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


@pytest.mark.alone
def test_other_tests_wait_for_one_that_must_run_alone(pytestconfig: pytest.Config) -> None:
    with pytest.raises(BlockingIOError):
        ask_for_a_turn(pytestconfig)


def test_tests_run_side_by_side_where_they_may(pytestconfig: pytest.Config) -> None:
    ask_for_a_turn(pytestconfig)
