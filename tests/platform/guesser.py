"""An agent that says a random number of Python, one of the operating system, and the time."""

import os
import random
import time
from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput


async def agent(_: RunAgentInput) -> AsyncIterator[str]:
    """Yield the three numbers."""
    yield f"{random.random()} "  # noqa: S311 - the fault that a snapshot shows
    yield f"{os.urandom(8).hex()} "
    yield str(time.time())
