"""Outcomes of approvals, in the form that clients of release 1.0 read: ``type``, ``reason`` and ``modifications``.

Rule: pure functions. ``approved``, ``cancelled``, ``expired`` and ``elsewhere`` tell programs the same without words.
"""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from agui_container.transports.grpc.roz.requests import parameters_of

Outcome = Mapping[str, Any]
"""Outcome of an approval, by the names in docs/grpc.md."""

APPROVED: Outcome = {"type": "approved", "approved": True}
DENIED: Outcome = {"type": "denied", "approved": False, "reason": "The user has denied the call."}
CANCELLED: Outcome = {"type": "denied", "approved": False, "cancelled": True, "reason": "The turn was cancelled."}
EXPIRED: Outcome = {"type": "denied", "approved": False, "expired": True, "reason": "Nobody has decided in time."}

APPROVED_ELSEWHERE: Outcome = {**APPROVED, "elsewhere": True}
DENIED_ELSEWHERE: Outcome = {**DENIED, "elsewhere": True, "reason": "Another client has denied the call."}
UNKNOWN_ELSEWHERE: Outcome = {"elsewhere": True, "reason": "Another client has answered."}
"""Outcome of an approval that another client has answered, if no result tells its decision."""


def client_outcome(arguments: str, edited: Mapping[str, object] | None, *, is_approved: bool) -> Outcome:
    """Return the outcome of the client's own decision. ``edited`` replaces the arguments of an approved call."""
    if not is_approved:
        return DENIED
    modifications = [] if edited is None else modifications_of(parameters_of(arguments), edited)
    return {**APPROVED, "type": "modified", "modifications": modifications} if modifications else APPROVED


def modifications_of(before: Mapping[str, object], after: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the arguments that differ, with their values as JSON. A missing argument has an empty value."""
    fields = [name for name in {**before, **after} if before.get(name, ...) != after.get(name, ...)]
    return [{"field": name, "old_value": _json_of(before, name), "new_value": _json_of(after, name)} for name in fields]


def _json_of(arguments: Mapping[str, object], name: str) -> str:
    return to_json(arguments[name]).decode() if name in arguments else ""
