"""Limits of callers, and the counters that are kept for them."""

import logging

import pytest
from msgspec import structs

from agui_container.engine.caller_usage import MIN_SWEEP, CallerUsages, Resource
from agui_container.engine.policy import CallerLimits, CapacityLimits
from agui_container.engine.service import Service
from agui_container.main import read_caller_limits
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import SettingsError
from tests.engine.doubles import FakeClock, asking, caller, envelopes, forever, make_service, status
from tests.requirements import requirement

ATTACKS = 2_000


def test_a_caller_has_half_of_what_the_process_has() -> None:
    own, process = CallerLimits(), CapacityLimits()
    assert [2 * limit for limit in (own.runs, own.request_bytes, own.log_bytes)] == [
        process.open_runs,
        process.open_bytes,
        process.all_bytes,
    ]
    assert [2 * limit for limit in (own.streams, own.sockets, own.background_tasks)] == [
        process.open_streams,
        process.open_sockets,
        process.background_tasks,
    ]


def test_the_limits_of_the_process_stay_above_those_of_a_caller() -> None:
    limits = read_caller_limits('{"runs": 2000, "runsPerMinute": 1, "messagesPerSecond": 9}')
    assert (limits.runs, limits.runs_per_minute, limits.messages_per_second) == (2_000, 1, 9)
    assert structs.replace(limits, runs=1_000, runs_per_minute=6_000, messages_per_second=500) == CallerLimits()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"runs": 2001}', "runs: must be from 1 to 2000"),
        ('{"logBytes": 0}', "logBytes: must be from 1 to 1000000000"),
        ('{"run": 1}', "Object contains unknown field `run`"),
        ('{"runs": "1"}', "Expected `int`, got `str` - at `$.runs`"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "Input data was truncated"),
    ],
)
def test_limits_that_cannot_be_used_stop_the_start_with_one_line(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_caller_limits(text)
    assert str(caught.value) == f"AGUI_CALLER_LIMITS={text!r}: {problem}."


async def abandon_runs(service: Service, owner: str, count: int) -> None:
    """Start runs that never yield anything, and disconnect from each at once."""
    for number in range(count):
        service.start(asking(f"t{number}"), caller(owner)).close()


@requirement("caller.abandoned")
async def test_two_thousand_runs_that_nobody_reads_keep_nobody_out() -> None:
    service = make_service(forever)
    await abandon_runs(service, "first", ATTACKS)
    assert service.usages.used[Resource.RUNS] == CallerLimits().runs
    assert status(service.start(asking(), caller("second"))) == "queued"
    await service.drain(0)


@requirement("caller.abandoned")
async def test_many_callers_that_leave_their_runs_keep_nobody_out() -> None:
    service = make_service(forever)
    for owner in ("first", "other", "third"):
        await abandon_runs(service, owner, ATTACKS // 2)
    assert service.usages.used[Resource.RUNS] == CapacityLimits().open_runs
    reader = service.start(asking(), caller("second"))
    assert service.usages.used[Resource.RUNS] == CapacityLimits().open_runs
    await service.drain(0)
    assert len(await envelopes(reader)) >= 1


def test_a_ledger_without_anything_to_count_is_removed() -> None:
    clock = FakeClock()
    usages = CallerUsages(CapacityLimits(), CallerLimits(), clock)
    kept = usages.of("kept")
    kept.add(Resource.SOCKETS)
    usages.of("recent").count_run()
    for number in range(3 * MIN_SWEEP):
        usages.of(f"session {number}")
    assert len(usages) <= MIN_SWEEP
    assert usages.of("kept") is kept
    for _ in range(CallerLimits().runs_per_minute - 1):
        usages.of("recent").count_run()
    with pytest.raises(AppError):
        usages.of("recent").count_run()
    clock.advance(60)
    for number in range(2 * MIN_SWEEP):
        usages.of(f"another session {number}")
    assert len(usages) <= MIN_SWEEP


def test_a_limit_is_logged_once_in_a_minute_for_each_caller(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = FakeClock()
    usage = CallerUsages(CapacityLimits(), CallerLimits(sockets=1), clock).of("first")
    usage.add(Resource.SOCKETS)

    def refused() -> ErrorCode:
        with pytest.raises(AppError) as caught:
            usage.check(Resource.SOCKETS)
        return caught.value.code

    assert {refused() for _ in range(5)} == {ErrorCode.RATE_LIMIT_EXCEEDED}
    clock.advance(60)
    refused()
    assert caplog.messages == ["limit reached limit=sockets caller=first"] * 2
