"""Helpers for tests of goals: declarations, and the state of goals from events."""

from collections.abc import Sequence

from tests.engine.doubles import Json

NOTE: Json = {"type": "note", "description": "A note.", "schema": {"type": "object"}}
"""A goal for which any data will do."""

SUM: Json = {
    "type": "sum",
    "schema": {
        "type": "object",
        "properties": {"amount": {"type": "integer", "minimum": 1}},
        "required": ["amount"],
        "additionalProperties": False,
    },
}
"""A goal whose data must fit."""


def goals(*declared: Json) -> Json:
    """Return ``forwardedProps`` that declare these goals."""
    return {"goals": list(declared)}


def custom_values(events: Sequence[Json], name: str) -> list[Json]:
    """Return the values of the CUSTOM events of this name."""
    return [event["value"] for event in events if event["type"] == "CUSTOM" and event["name"] == name]


def goal_statuses(events: Sequence[Json]) -> dict[str, str]:
    """Return the status of each goal of a run after these events, by type."""
    rows = [row for value in custom_values(events, "goals.declared") for row in value["goals"]]
    stand = {row["type"]: str(row["status"]) for row in rows}
    for status in ("achieved", "failed"):
        stand.update({value["type"]: status for value in custom_values(events, f"goal.{status}")})
    return stand
