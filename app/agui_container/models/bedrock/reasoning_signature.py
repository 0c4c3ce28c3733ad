"""Signatures and redacted content of reasoning, as one opaque string: kind, digest, payload.

A signature is valid only for the text and the model that it was made for. Bedrock refuses a whole request because of
one wrong signature, and would refuse every later request of the conversation too. So the string carries a digest of
model and text, and reasoning is sent back only if the digest matches. Foreign, altered and malformed strings are
dropped.
"""

import base64
import binascii
import hashlib
from typing import Any

_TEXT, _REDACTED = "bedrock-text", "bedrock-redacted"


def sign_text(model_id: str, text: str, signature: str) -> str:
    return f"{_TEXT}.{_digest(model_id, text)}.{signature}"


def sign_redacted(model_id: str, content: bytes) -> str:
    """Return redacted reasoning, which Bedrock encrypts, as a string that is bound to the model."""
    payload = base64.b64encode(content).decode()
    return f"{_REDACTED}.{_digest(model_id, payload)}.{payload}"


def verify_reasoning(model_id: str, text: str, encrypted: str | None) -> dict[str, Any] | None:
    """Return a ``reasoningContent`` block, or None if this was not made here, for this model and text."""
    kind, _, rest = (encrypted or "").partition(".")
    digest, _, payload = rest.partition(".")
    if kind == _TEXT and payload and digest == _digest(model_id, text):
        return {"reasoningText": {"text": text, "signature": payload}}
    if kind == _REDACTED and payload and digest == _digest(model_id, payload):
        try:
            return {"redactedContent": base64.b64decode(payload, validate=True)}
        except (binascii.Error, ValueError):
            return None
    return None


def _digest(model_id: str, text: str) -> str:
    return hashlib.sha256(f"{model_id}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
