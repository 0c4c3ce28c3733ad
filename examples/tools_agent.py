"""The assistant with tools of your own, one ``async`` and one that blocks, on the offline model.

    AGUI_AGENT=examples.tools_agent:agent make run

Say: call add {"a": 1, "b": 2}
Or:  call lookup {"city": "Berlin"}
"""

import time

from app.agents.assistant import Assistant
from app.models.offline import OfflineModel
from app.ports import ToolError
from app.tools.builtin import builtin_tools
from app.tools.function import FunctionTool

POPULATION = {"Berlin": 3_700_000, "Potsdam": 180_000}


async def add(a: float, b: float) -> float:
    """Add two numbers. An ``async`` function runs on the event loop."""
    return a + b


def lookup(city: str) -> dict[str, object]:
    """Look a city up. A plain function runs in a thread, so it may block; what it gives goes back as JSON."""
    time.sleep(0.01)  # stands for a database
    if city not in POPULATION:
        raise ToolError(f"There is no city named {city}.")  # the model may read this and try again
    return {"city": city, "population": POPULATION[city]}


ADD = FunctionTool(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
    function=add,
)
LOOKUP = FunctionTool(
    name="lookup",
    description="How many people live in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    function=lookup,
    timeout=5,
)

agent = Assistant(
    model=OfflineModel(),
    tools=(ADD, LOOKUP, *builtin_tools()),
    system_prompt="You know cities and sums.",
)
