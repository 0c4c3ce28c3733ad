"""Fields of a tool call that only the model understands, as one opaque string: kind, digest, fields as JSON.

A model may need them back with the call in the next request, such as ``extra_content.google.thought_signature`` of
Gemini 3. AG-UI carries them in the ``encryptedValue`` of the call. The digest binds them to the model, because another
model would refuse fields that it does not know. Foreign, altered and malformed strings are dropped.
"""

import hashlib
import json
from collections.abc import Mapping

from pydantic_core import from_json

Fields = Mapping[str, object]

KIND = "openai-call"
KNOWN = frozenset({"id", "type", "index", "function"})
KNOWN_OF_FUNCTION = frozenset({"name", "arguments"})


class OpaqueFields:
    """Opaque fields of the calls of one model. ``origin`` names the server and the model."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def seal(self, fields: Fields) -> str:
        """Return the fields as a string that is bound to the model."""
        payload = json.dumps(fields, separators=(",", ":"))
        return f"{KIND}.{self._digest(payload)}.{payload}"

    def add_to(self, call: Fields, sealed: str | None) -> Fields:
        """Return the call with the fields of a sealed string, if it was sealed for this model."""
        kind, _, rest = (sealed or "").partition(".")
        digest, _, payload = rest.partition(".")
        if kind != KIND or digest != self._digest(payload):
            return call
        try:
            fields = from_json(payload)
        except ValueError:
            return call
        return _merge(fields, call)

    def _digest(self, payload: str) -> str:
        return hashlib.sha256(f"{self._origin}\0{payload}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def opaque_fields(call: Fields) -> dict[str, object]:
    """Return the fields of a call as a model sends it that are not part of the API."""
    fields = _without(call, KNOWN)
    function = call.get("function")
    of_function = _without(function, KNOWN_OF_FUNCTION) if isinstance(function, dict) else {}
    return {**fields, "function": of_function} if of_function else fields


def _without(fields: Fields, known: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def _merge(fields: object, call: Fields) -> Fields:
    """Add fields to a call. Fields that the call has are never replaced."""
    if not isinstance(fields, dict):
        return call
    function, own_function = fields.get("function"), call["function"]
    merged = {**fields, **call}
    if isinstance(function, dict) and isinstance(own_function, dict):
        merged["function"] = {**function, **own_function}
    return merged
