"""An agent that says a random number of Python, and one of the operating system."""

import os
import random
from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput


async def agent(_: RunAgentInput) -> AsyncIterator[str]:
    """Yield both numbers."""
    yield f"{random.random()} "  # noqa: S311 - the fault that a snapshot shows
    yield os.urandom(8).hex()
