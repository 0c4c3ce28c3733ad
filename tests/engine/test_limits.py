"""Limits of open runs, and of the runs of a minute."""

import pytest

from agui_container.engine.limits import CapacityLimits, IdentityLimits, Quota
from agui_container.protocol.errors import AppError
from tests.engine.doubles import FakeClock


def make_quota(open_runs: int = 100, runs: int = 100, runs_per_minute: int = 100) -> tuple[Quota, FakeClock]:
    clock = FakeClock()
    return Quota(CapacityLimits(open_runs=open_runs), IdentityLimits(runs, runs_per_minute), clock), clock


def test_without_an_identity_there_is_the_limit_of_the_process_and_no_rate() -> None:
    quota, _ = make_quota(open_runs=2, runs=1, runs_per_minute=1)
    quota.take("")
    quota.take("")
    with pytest.raises(AppError, match="This server has reached its limit of 2 open runs"):
        quota.take("")
    quota.release("")
    quota.take("")


def test_an_identity_has_room_again_when_a_run_of_its_own_has_ended_or_ends_for_the_new_one() -> None:
    quota, _ = make_quota(runs=1)
    quota.take("a")
    with pytest.raises(AppError, match="You have reached the limit of 1 open runs"):
        quota.take("a", ["b"])
    quota.take("b")
    quota.take("a", ["a"])
    assert quota.open_runs == 3


def test_a_clock_that_is_set_back_does_not_refuse_for_longer_than_a_minute() -> None:
    quota, clock = make_quota(runs_per_minute=1)
    quota.take("a")
    clock.advance(-1_000)
    quota.take("a")
