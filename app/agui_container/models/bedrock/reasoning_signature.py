"""Reasoning artefacts as one opaque string: kind, binding, payload.

A signature is only good for the text and the model it was made for, and Bedrock refuses a whole request because of one
that does not fit, which would end the conversation for good. So the string carries a digest of both, and an artefact is
given back only where it still fits; foreign, altered and malformed ones are dropped.
"""

import base64
import binascii
import hashlib
from typing import Any

_TEXT, _REDACTED = "bedrock-text", "bedrock-redacted"


def sign_text(model_id: str, text: str, signature: str) -> str:
    """A signature, bound to the reasoning text it signs."""
    return f"{_TEXT}.{_binding(model_id, text)}.{signature}"


def sign_redacted(model_id: str, content: bytes) -> str:
    """Reasoning that Bedrock shows to nobody."""
    payload = base64.b64encode(content).decode()
    return f"{_REDACTED}.{_binding(model_id, payload)}.{payload}"


def verify_reasoning(model_id: str, text: str, sealed: str | None) -> dict[str, Any] | None:
    """The ``reasoningContent`` that was sealed, or None if this is not ours, not this model's or not this text's."""
    kind, _, rest = (sealed or "").partition(".")
    binding, _, payload = rest.partition(".")
    if kind == _TEXT and payload and binding == _binding(model_id, text):
        return {"reasoningText": {"text": text, "signature": payload}}
    if kind == _REDACTED and payload and binding == _binding(model_id, payload):
        try:
            return {"redactedContent": base64.b64decode(payload, validate=True)}
        except (binascii.Error, ValueError):
            return None
    return None


def _binding(model_id: str, text: str) -> str:
    return hashlib.sha256(f"{model_id}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
