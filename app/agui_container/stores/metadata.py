"""Metadata of a thread: one JSON object, to which every store adds entries in the same way."""

from collections.abc import Mapping

from pydantic_core import from_json, to_json


def merge_metadata(metadata: bytes | None, notes: Mapping[str, object]) -> bytes | None:
    """Return metadata with ``notes`` merged in by name, as JSON. A note of None removes the entry.

    Returns None if no entry remains.
    """
    merged = {**(from_json(metadata) if metadata else {}), **notes}
    remaining = {name: value for name, value in merged.items() if value is not None}
    return to_json(remaining) if remaining else None
