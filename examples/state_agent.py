"""A shopping list that the user's page and the assistant share, and a tool that reports its progress.

    AGUI_AGENT=examples.state_agent:agent make run

Say: call add_item {"item": "milk"}
Or:  call cook {"dish": "soup"}
"""

from ag_ui.core import ActivityDeltaEvent, ActivitySnapshotEvent

from agui_container import Assistant, RunContext, ToolError, tool
from agui_container.models import OfflineModel
from agui_container.tools import builtin_tools

STEPS = ("chop", "boil", "serve")


@tool
def add_item(item: str, ctx: RunContext) -> str:
    """Put something on the shared shopping list."""
    state = ctx.state.value  # a copy: changing it changes nothing
    items = state.get("items") if isinstance(state, dict) else None
    if items is None:
        ctx.state.replace({"items": [item]})  # STATE_SNAPSHOT
    elif item in items:
        raise ToolError(f"{item} is on the list already.")
    else:
        ctx.state.patch({"op": "add", "path": "/items/-", "value": item})  # STATE_DELTA
    return f"{item} is on the list"


@tool
async def cook(dish: str, ctx: RunContext) -> str:
    """Cook a dish, step by step."""
    progress = ctx.new_id()
    content = {"title": f"Cooking {dish}", "done": []}
    ctx.emit(ActivitySnapshotEvent(message_id=progress, activity_type="PROGRESS", content=content))
    for step in STEPS:
        patch = [{"op": "add", "path": "/done/-", "value": step}]
        ctx.emit(ActivityDeltaEvent(message_id=progress, activity_type="PROGRESS", patch=patch))
    return f"the {dish} is ready"


agent = Assistant(model=OfflineModel(), tools=(add_item, cook, *builtin_tools()))
