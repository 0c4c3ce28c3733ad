"""Surfaces of A2UI: one that A2UI's middleware makes of a tool's result, and one that a tool sends itself.

    AGUI_AGENT=examples.a2ui_agent:agent make run

Say: call price {"item": "tea", "euros": 3}
Or:  call render_a2ui {"operations": []}
"""

from ag_ui.core import ActivitySnapshotEvent

from agui_container import Assistant, RunContext, tool
from agui_container.models import OfflineModel

CATALOG = "https://a2ui.org/specification/v0_9/basic_catalog.json"


@tool
def price(item: str, euros: float) -> dict[str, object]:
    """Show the price of something."""
    words = {"id": "root", "component": "Text", "text": f"{item}: {euros:.2f} €"}
    return {
        "a2ui_operations": [
            {"version": "v0.9", "createSurface": {"surfaceId": item, "catalogId": CATALOG}},
            {"version": "v0.9", "updateComponents": {"surfaceId": item, "components": [words]}},
        ]
    }


@tool
async def render_a2ui(operations: list[dict[str, object]], ctx: RunContext) -> str:
    """Show a surface. The operations are those of A2UI 0.9."""
    key, content = f"a2ui-surface-{ctx.tool_call_id}", {"a2ui_operations": operations}
    ctx.emit(ActivitySnapshotEvent(message_id=key, activity_type="a2ui-surface", content=content, replace=True))
    return "The surface is shown."


agent = Assistant(model=OfflineModel(), tools=(price, render_a2ui))
