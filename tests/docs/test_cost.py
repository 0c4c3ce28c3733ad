"""The cost of a session: what the program computes, and that the page has its table."""

import pytest

from bench.cost import Server, Session, cost

IDLE = Server("idle", start=0.0, run=0.0, second=0.0, memory=1_024.0)


@pytest.mark.parametrize(
    ("server", "session", "usd"),
    [
        (IDLE, Session("an hour of a gigabyte", 0, 3_600), (0.0, 0.00945)),
        (IDLE._replace(memory=10.0), Session("the least memory", 0, 3_600), (0.0, 0.00945 / 8)),
        (IDLE._replace(start=2_600.0, run=500.0), Session("a core for an hour", 2, 0), (0.0895, 0.00945 / 3_600)),
        (IDLE._replace(second=1.0), Session("a core for half an hour", 0, 1_800), (0.0895 / 2, 0.00945 / 2)),
    ],
)
def test_cpu_is_billed_by_use_and_memory_by_time(server: Server, session: Session, usd: tuple[float, float]) -> None:
    assert cost(server, session) == pytest.approx(usd)
