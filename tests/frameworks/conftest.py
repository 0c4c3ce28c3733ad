"""A server for each framework's agents, reached over both transports."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.official.conftest import judge
from tests.official.conversations import ClientTransport, Sse, WebSocket
from tests.official.judge import Judge
from tests.sockets.process import ROOT, ServerProcess, serving

__all__ = ["judge"]

STRANDS_PYTHON = ROOT / ".venv" / "strands" / "bin" / "python"
"""Strands has an environment of its own (docs/decisions/0016)."""


@dataclass(frozen=True)
class FrameworkUnderTest:
    """One framework's modules. ``quiet`` counts the events of a run up to its first word."""

    name: str
    quiet: int
    python: str | Path = sys.executable

    @property
    def example(self) -> str:
        """The agent of the example."""
        return f"examples.{self.name}_agent:agent"

    @property
    def scripted(self) -> str:
        """The agent whose model follows the script."""
        return f"tests.frameworks.{self.name.partition('_')[0]}_agents:agent"

    @property
    def asking(self) -> str:
        """The agent that asks before it uses its tool."""
        return f"tests.frameworks.{self.name.partition('_')[0]}_agents:asking"


FRAMEWORKS = [
    FrameworkUnderTest("langgraph", 4),
    FrameworkUnderTest("pydantic_ai", 3),
    FrameworkUnderTest("strands", 4, STRANDS_PYTHON),
]

Serve = Callable[[FrameworkUnderTest, str], ServerProcess]


@pytest.fixture(params=FRAMEWORKS, ids=lambda framework: framework.name)
def framework(request: pytest.FixtureRequest) -> FrameworkUnderTest:
    """Each framework."""
    chosen: FrameworkUnderTest = request.param
    return chosen


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Start the server of an agent, once per module."""
    servers: dict[str, ServerProcess] = {}
    with ExitStack() as stack:

        def serve(framework: FrameworkUnderTest, agent: str) -> ServerProcess:
            if agent not in servers:
                servers[agent] = stack.enter_context(serving(framework.python, agent=agent))
            return servers[agent]

        yield serve


@pytest.fixture(params=[Sse, WebSocket], ids=["sse", "ws"])
def transport(request: pytest.FixtureRequest) -> Callable[[Judge, ServerProcess], ClientTransport]:
    """A way to ask a server."""
    chosen: Callable[[Judge, ServerProcess], ClientTransport] = request.param
    return chosen
