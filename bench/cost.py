"""The cost of a session on AgentCore Runtime, by its prices and the figures of the benchmark.

    python -m bench.cost                                          the table of docs/behind-agentcore.md
    python -m bench.cost --turns 5 --seconds 1800 --memory 300    a session of yours, with the memory of its container

AgentCore bills each second: the CPU that was used in it, and the memory that was in use, 128 MB at least. Waiting costs
no CPU, and memory is billed while a session is idle, too. Version 2 of the platform bills less memory again after a
peak; these sessions have none.

Sources: https://aws.amazon.com/bedrock/agentcore/pricing/ (November 2026), docs/benchmarks.md for a start, a run of 50
deltas and memory. A second without a run was measured over 20 idle seconds and 3,000 pings, of which AgentCore sends
one in two seconds. A frozen container needs less.
"""

import argparse
import sys
from typing import NamedTuple

VCPU_HOUR_USD = 0.0895
GB_HOUR_USD = 0.00945
LEAST_MB = 128.0


class Server(NamedTuple):
    """A server, with the CPU seconds of a start, a run and a second without one, and the megabytes of its process."""

    name: str
    start: float
    run: float
    second: float
    memory: float


class Session(NamedTuple):
    name: str
    turns: int
    seconds: float


SERVERS: tuple[Server, ...] = (
    Server("this container", start=0.338, run=0.00127, second=0.0018, memory=88.8),
    Server("`AGUIApp`", start=0.337, run=0.00103, second=0.0019, memory=60.5),
)
SESSIONS: tuple[Session, ...] = (
    Session("a turn of 10 s, then the idle timeout of 15 minutes", turns=1, seconds=910),
    Session("the same with `idle_timeout = 120`", turns=1, seconds=130),
    Session("20 turns in half an hour, then 15 minutes", turns=20, seconds=2_700),
    Session("an hour idle", turns=0, seconds=3_600),
)


def cost(server: Server, session: Session) -> tuple[float, float]:
    """Return what the CPU and the memory of a session cost, in USD."""
    seconds = max(session.seconds, 1.0)
    cpu = server.start + session.turns * server.run + seconds * server.second
    memory = seconds * max(server.memory, LEAST_MB) / 1_024
    return cpu / 3_600 * VCPU_HOUR_USD, memory / 3_600 * GB_HOUR_USD


def table(sessions: tuple[Session, ...], servers: tuple[Server, ...]) -> str:
    lines = [
        "| " + " | ".join(["1,000 sessions", *(f"{server.name}: CPU + memory" for server in servers)]) + " |",
        "|---" * (1 + len(servers)) + "|",
    ]
    for session in sessions:
        cells = [session.name]
        for server in servers:
            cpu, memory = (1_000 * each for each in cost(server, session))
            cells.append(f"${cpu:.2f} + ${memory:.2f} = ${cpu + memory:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help="turns of the session")
    parser.add_argument("--seconds", type=float, help="its life, with the idle timeout")
    parser.add_argument("--memory", type=float, help="megabytes of the container, as Docker shows them")
    given = parser.parse_args()
    sessions, servers = SESSIONS, SERVERS
    if given.turns is not None or given.seconds is not None:
        sessions = (Session("yours", given.turns or 0, given.seconds or 900),)
    if given.memory is not None:
        servers = (SERVERS[0]._replace(memory=given.memory),)
    sys.stdout.write(table(sessions, servers))


if __name__ == "__main__":
    main()
