"""The server of examples/two_processes with the tools of every framework, in crewAI's own environment.

Its memory stores nothing. A flow makes one in LanceDB, whose packages are larger than all others of crewAI, and the
example never uses it.
"""

from crewai.memory.storage.factory import set_memory_storage_factory

set_memory_storage_factory(lambda _: object())

from crewai.tools import tool  # noqa: E402 - the example makes the flow

from examples.two_processes.crew_server import ASKING, TOOLS, app  # noqa: E402
from tests.agents.frameworks import dice  # noqa: E402

TOOLS |= {"roll": tool(dice.roll), "stumble": tool(dice.stumble), "charge": tool(dice.charge)}
ASKING.add("charge")

__all__ = ["app"]
