"""What waits for answers is bounded: in threads, in bytes and in time."""

import logging

import pytest
from ag_ui.core import Interrupt, UserMessage

from app.agents import shelf
from app.agents.approvals import OPEN_BYTES, SETTLED_BYTES, SHOWN_ARGUMENTS, Approval, Approvals
from app.agents.turn import Call
from app.ports import Permission, Ruling, Suspension

ASK = Ruling(Permission.ASK)
MEGABYTE = 1_000_000


class Clock:
    """Time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def thread(number: int) -> tuple[str, str]:
    return ("owner", f"thread-{number}")


def held(approvals: Approvals, number: int, size: int = 0) -> Approval:
    """One open approval with arguments of this size."""
    approval = approvals.ask(Call(f"call-{number}", "pay", "x" * size), ASK, f"interrupt-{number}")
    approvals.hold(thread(number), [approval])
    return approval


def test_the_message_of_an_interrupt_shows_the_beginning_of_long_arguments() -> None:
    (interrupt,) = held(Approvals(), 1, MEGABYTE).interrupts
    assert interrupt.message
    assert interrupt.metadata
    assert len(interrupt.message) < SHOWN_ARGUMENTS + 50
    assert interrupt.message.endswith("x…?")
    assert len(interrupt.metadata["arguments"]) == MEGABYTE


def test_open_approvals_take_so_many_bytes_and_the_oldest_make_room(caplog: pytest.LogCaptureFixture) -> None:
    approvals = Approvals()
    for number in range(60):
        held(approvals, number, MEGABYTE)
    kept = [number for number in range(60) if approvals.open(thread(number))]
    assert kept == list(range(60 - len(kept), 60))
    assert len(kept) == OPEN_BYTES // (2 * MEGABYTE) - 1  # the call and the interrupt's metadata have the arguments
    assert "thread=<thread-0> | its open approvals are forgotten: there are too many" in caplog.text


def test_the_conversation_of_a_suspended_call_counts() -> None:
    approvals = Approvals()
    for number in range(60):
        suspension = Suspension(
            (Interrupt(id="i", reason="r"),), "part", (UserMessage(id="u", content="x" * MEGABYTE),)
        )
        call = Call(f"call-{number}", "delegate", "{}")
        approvals.hold(thread(number), [Approval(call, suspension.interrupts, suspension=suspension)])
    assert sum(1 for number in range(60) if approvals.open(thread(number))) == OPEN_BYTES // MEGABYTE - 1


def test_results_take_so_many_bytes_and_never_the_room_of_what_is_open() -> None:
    approvals = Approvals()
    waiting = held(approvals, 99)
    for number in range(30):
        approvals.settle(thread(number), held(approvals, number), "x" * MEGABYTE)
    assert sum(1 for number in range(30) if approvals.settled(thread(number))) == SETTLED_BYTES // MEGABYTE - 1
    assert approvals.open(thread(99)) == (waiting,)


def test_only_so_many_threads_wait(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(shelf, "MAX_THREADS", 3)
    approvals = Approvals()
    for number in range(4):
        held(approvals, number)
    assert [len(approvals.open(thread(number))) for number in range(4)] == [0, 1, 1, 1]
    (record,) = caplog.records
    assert (record.levelno, "thread=<thread-0>" in record.getMessage()) == (logging.WARNING, True)


def test_what_has_expired_goes_when_something_new_is_held() -> None:
    clock = Clock()
    approvals = Approvals(clock, lifetime=10)
    suspension = Suspension((Interrupt(id="i", reason="r"),), "part", ())
    held(approvals, 1)
    approvals.hold(thread(2), [Approval(Call("c", "delegate", "{}"), suspension.interrupts, suspension=suspension)])
    clock.now = 9
    held(approvals, 3)
    clock.now = 10
    assert [len(approvals.open(thread(number))) for number in (1, 2, 3)] == [1, 1, 1]
    held(approvals, 4)
    assert [len(approvals.open(thread(number))) for number in (1, 2, 3, 4)] == [0, 0, 1, 1]


def test_a_thread_that_goes_on_forgets_what_it_settled_long_ago() -> None:
    clock = Clock()
    approvals = Approvals(clock, lifetime=10)
    for moment in range(30):
        clock.now = moment
        approval = approvals.ask(Call(f"call-{moment}", "pay", "{}"), ASK, "interrupt")
        approvals.settle(thread(1), approval, "done")
    assert [approval.call.id for approval in approvals.settled(thread(1))] == [f"call-{at}" for at in range(20, 30)]


def test_assistants_below_keep_theirs_apart_and_share_the_room() -> None:
    approvals = Approvals()
    below = approvals.below()
    held(approvals, 1, 20 * MEGABYTE)
    assert below.open(thread(1)) == ()
    held(below, 1, 20 * MEGABYTE)
    assert approvals.open(thread(1)) == ()
    assert len(below.open(thread(1))) == 1
