"""Limits of the process and of identities, and what is in use of them."""

import asyncio
import logging

import pytest
from msgspec import structs

from agui_container.engine.admission import quota as quota_module
from agui_container.engine.admission.quota import MIN_SWEEP, SMALL_BYTES, Limit, Quota
from agui_container.engine.engine import Engine
from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.main import read_identity_limits
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import SettingsError
from tests.engine.doubles import FakeClock, asking, bytes_in_flight, caller, forever, make_quota, make_service, status
from tests.requirements import requirement

ATTACKS = 2_000
LARGE = 10 * SMALL_BYTES


def test_an_identity_has_half_of_what_the_process_has() -> None:
    own, process = IdentityLimits(), CapacityLimits()
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


def test_the_limits_of_the_process_stay_above_those_of_an_identity() -> None:
    limits = read_identity_limits('{"runs": 2000, "runsPerMinute": 1, "messagesPerSecond": 9}')
    assert (limits.runs, limits.runs_per_minute, limits.messages_per_second) == (2_000, 1, 9)
    assert structs.replace(limits, runs=1_000, runs_per_minute=6_000, messages_per_second=500) == IdentityLimits()


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
        read_identity_limits(text)
    assert str(caught.value) == f"AGUI_CALLER_LIMITS={text!r}: {problem}."


async def abandon_runs(service: Engine, owner: str, count: int) -> None:
    """Start runs that never yield anything, and disconnect from each at once."""
    for number in range(count):
        service.start(asking(f"t{number}"), caller(owner)).close()


@requirement("caller.abandoned")
async def test_two_thousand_runs_that_nobody_reads_keep_nobody_out() -> None:
    service = make_service(forever)
    await abandon_runs(service, "first", ATTACKS)
    assert service.quota.amounts[Limit.RUNS].used == IdentityLimits().runs
    assert status(service.start(asking(), caller("second"))) == "queued"
    await service.drain(0)


def test_an_identity_without_anything_in_use_is_forgotten() -> None:
    clock = FakeClock()
    quota = Quota(CapacityLimits(), IdentityLimits(), clock)
    kept, lease = quota.of("kept"), quota.of("kept").acquire(Limit.SOCKETS)
    quota.of("recent").count(Limit.RUNS_PER_MINUTE)
    idle = quota.of("idle")
    for number in range(3 * MIN_SWEEP):
        quota.of(f"session {number}")
    assert quota.of("idle") is not idle
    assert quota.of("kept") is kept
    for _ in range(IdentityLimits().runs_per_minute - 1):
        quota.of("recent").count(Limit.RUNS_PER_MINUTE)
    with pytest.raises(AppError):
        quota.of("recent").count(Limit.RUNS_PER_MINUTE)
    lease.release()
    clock.advance(60)
    for number in range(2 * MIN_SWEEP):
        quota.of(f"another session {number}")
    assert quota.of("kept") is not kept


def test_a_limit_is_logged_once_in_a_minute_for_each_identity(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = FakeClock()
    quota = Quota(CapacityLimits(open_sockets=2), IdentityLimits(sockets=1), clock)
    leases = [quota.of("first").acquire(Limit.SOCKETS), quota.of("").acquire(Limit.SOCKETS)]

    def refused(identity: str) -> ErrorCode:
        with pytest.raises(AppError) as caught:
            quota.of(identity).acquire(Limit.SOCKETS)
        return caught.value.code

    assert {refused("first") for _ in range(5)} == {ErrorCode.RATE_LIMIT_EXCEEDED}
    clock.advance(60)
    refused("first")
    refused("")
    assert caplog.messages == ["limit reached limit=sockets identity=first"] * 2 + ["limit reached limit=sockets"]
    for lease in leases:
        lease.release()
    assert quota.amounts[Limit.SOCKETS].used == 0


@requirement("caller.identity")
def test_without_an_identity_there_are_the_limits_of_the_process_and_no_rates() -> None:
    quota = make_quota(CapacityLimits(open_sockets=4), IdentityLimits(sockets=1, runs_per_minute=1))
    nobody = quota.of("")
    for _ in range(4):
        nobody.acquire(Limit.SOCKETS)
        nobody.count(Limit.RUNS_PER_MINUTE)
    with pytest.raises(AppError, match="This server has reached its limit of 4 open sockets"):
        nobody.acquire(Limit.SOCKETS)


# --- bytes in flight ---


def test_one_identity_gets_half_of_the_bytes_in_flight_and_another_one_the_other_half() -> None:
    quota = make_quota(CapacityLimits(bytes_in_flight=2 * LARGE))
    one, other = quota.of("a"), quota.of("b")
    with one.acquire(Limit.BYTES_IN_FLIGHT, LARGE):
        with pytest.raises(AppError, match="Too many bytes") as raised:
            one.acquire(Limit.BYTES_IN_FLIGHT, SMALL_BYTES + 1)
        assert raised.value.code == "RATE_LIMIT_EXCEEDED"
        with other.acquire(Limit.BYTES_IN_FLIGHT, LARGE):
            assert quota.amounts[Limit.BYTES_IN_FLIGHT].used == 2 * LARGE
            with pytest.raises(AppError, match="Too many bytes"):
                quota.of("c").acquire(Limit.BYTES_IN_FLIGHT, LARGE)
    assert quota.amounts[Limit.BYTES_IN_FLIGHT].used == 0
    one.acquire(Limit.BYTES_IN_FLIGHT, LARGE)


def test_small_bodies_are_not_counted() -> None:
    quota = make_quota(CapacityLimits(bytes_in_flight=LARGE))
    with quota.of("").acquire(Limit.BYTES_IN_FLIGHT, LARGE), quota.of("").acquire(Limit.BYTES_IN_FLIGHT, SMALL_BYTES):
        assert quota.amounts[Limit.BYTES_IN_FLIGHT].used == LARGE


def test_a_lease_that_cannot_grow_stays_as_it_is() -> None:
    quota = bytes_in_flight(LARGE)
    with quota.acquire(Limit.BYTES_IN_FLIGHT, LARGE) as lease:
        with pytest.raises(AppError, match="Too many bytes"):
            lease.resize(LARGE + 1)
        assert lease.size == LARGE


async def test_an_event_waits_until_there_is_room_and_is_not_refused(caplog: pytest.LogCaptureFixture) -> None:
    quota = bytes_in_flight(LARGE)
    first = quota.acquire(Limit.BYTES_IN_FLIGHT, LARGE)
    later = asyncio.create_task(quota.acquire_when_free(Limit.BYTES_IN_FLIGHT, LARGE))
    await asyncio.sleep(0)
    assert not later.done()
    first.release()
    (await later).release()
    assert not caplog.messages


async def test_an_event_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_module, "WAIT_SECONDS", 0)
    quota = bytes_in_flight(LARGE)
    with quota.acquire(Limit.BYTES_IN_FLIGHT, LARGE), pytest.raises(AppError, match="Too many bytes"):
        await quota.acquire_when_free(Limit.BYTES_IN_FLIGHT, LARGE)
