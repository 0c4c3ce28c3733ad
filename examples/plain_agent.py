"""A plain generator: no async anywhere. It runs in a thread of its own, so it may block.

AGUI_AGENT=examples.plain_agent:agent make run
"""

import time
from collections.abc import Iterator

from ag_ui.core import RunAgentInput

from agui_container import RunContext


def agent(input: RunAgentInput, ctx: RunContext) -> Iterator[str]:
    """Count the messages, slowly. A cancelled run stops at the next ``yield`` by itself."""
    ctx.logger.info("counting %d messages", len(input.messages))
    for number, message in enumerate(input.messages, 1):
        time.sleep(0.01)  # stands for a database driver, an HTTP client, … that knows no async
        yield f"Message {number} is from {message.role}. "
