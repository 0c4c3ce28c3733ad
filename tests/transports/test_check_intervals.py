"""Clients that wait, and how often they may check the store."""

from contextlib import ExitStack

from agui_container.transports.check_intervals import MAX_CHECKS, CheckIntervals
from tests.requirements import requirement


@requirement("caller.streams")
def test_the_clients_of_a_caller_check_the_store_no_more_often_together_however_many_wait() -> None:
    intervals = CheckIntervals()
    with ExitStack() as waiting:
        seconds = [waiting.enter_context(intervals.wait("many", 1.0)) for _ in range(20 * MAX_CHECKS)]
        assert seconds[: MAX_CHECKS + 1] == [*[1.0] * MAX_CHECKS, 1.0 + 1 / MAX_CHECKS]
        assert seconds[-1] == 20.0
        with intervals.wait("another", 1.0) as alone:
            assert alone == 1.0
    with intervals.wait("many", 1.0) as afterwards:
        assert afterwards == 1.0
