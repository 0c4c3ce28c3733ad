"""The metadata of a thread: a JSON object to which each store puts notes in the same way."""

from collections.abc import Mapping

from pydantic_core import from_json, to_json


def annotated(metadata: bytes | None, notes: Mapping[str, object]) -> bytes | None:
    """Put notes into metadata by their names; None takes one away. Returns None where nothing remains."""
    merged = {**(from_json(metadata) if metadata else {}), **notes}
    remaining = {name: value for name, value in merged.items() if value is not None}
    return to_json(remaining) if remaining else None
