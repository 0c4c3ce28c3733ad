"""The assistant with tools of your own, one ``async`` and one that blocks, on the offline model.

    AGUI_AGENT=examples.tools_agent:agent make run

Say: call add {"a": 1, "b": 2}
Or:  call lookup {"city": "Berlin"}
"""

import time
from typing import Annotated

from pydantic import Field

from agui_container import Assistant, ToolError, tool
from agui_container.models import OfflineModel
from agui_container.tools import builtin_tools

POPULATION = {"Berlin": 3_700_000, "Potsdam": 180_000}


@tool
async def add(a: int, b: int) -> int:
    """Add two whole numbers.

    Args:
        a: the first number
        b: the second number
    """
    return a + b  # an async function runs on the event loop


@tool(timeout=5)
def lookup(city: Annotated[str, Field(description="A city in Germany")]) -> dict[str, object]:
    """Tell how many people live in a city."""
    time.sleep(0.01)  # stands for a database: a plain function runs in a thread, so it may block
    if city not in POPULATION:
        raise ToolError(f"There is no city named {city}.")  # the model may read this and try again
    return {"city": city, "population": POPULATION[city]}  # goes back as JSON


agent = Assistant(
    model=OfflineModel(),
    tools=(add, lookup, *builtin_tools()),
    system_prompt="You know cities and sums.",
)
