"""Frames of a socket in short, and an agent whose runs have three of them."""

from collections.abc import AsyncIterator

from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from tests.engine.doubles import Json


async def brief(asked: RunAgentInput) -> AsyncIterator[Item]:
    yield CustomEvent(name="n", value=asked.run_id)


def frame_names(frames: list[Json]) -> list[str]:
    """Return a short name for each frame: a type with its run, a custom value, or a control with its code."""
    names = []
    for frame in frames:
        about = frame.get("runId") or frame.get("value") or frame.get("code") or frame.get("id") or ""
        names.append(f"{frame.get('type') or frame['control']} {about}".strip())
    return names


def whole(run: str) -> list[str]:
    return [f"RUN_STARTED {run}", f"CUSTOM {run}", f"RUN_FINISHED {run}"]
