"""Fields that only the model understands, as one opaque string: kind, digest, fields as JSON.

A model may need them back in the next request. They belong to a call, such as ``extra_content`` with the thought
signature of Gemini 3, or to the message: ``thinking_blocks`` with signatures of LiteLLM, ``reasoning_details`` of
OpenRouter. AG-UI carries them in the ``encryptedValue`` of a call or of a reasoning message. The digest binds them to
the model, because another model would refuse them. Foreign, altered and malformed strings are dropped.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

Fields = Mapping[str, Any]

KIND = "openai"
OF_CALL = "extra_content"
OF_MESSAGE = ("thinking_blocks", "reasoning_details")
"""Fields of a message. Each is a list of blocks, and a stream sends the blocks in pieces."""

TEXTS = ("thinking", "text", "summary")
"""Fields of a block whose pieces are joined."""


class OpaqueFields:
    """Opaque fields of one model. ``origin`` names the server and the model."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def seal(self, fields: Fields) -> str:
        payload = json.dumps(fields, separators=(",", ":"))
        return f"{KIND}.{self._digest(payload)}.{payload}"

    def open(self, sealed: str | None) -> Fields:
        kind, _, rest = (sealed or "").partition(".")
        digest, _, payload = rest.partition(".")
        if kind != KIND or digest != self._digest(payload):
            return {}
        try:
            fields = from_json(payload)
        except ValueError:
            return {}
        return fields if isinstance(fields, dict) else {}

    def _digest(self, payload: str) -> str:
        return hashlib.sha256(f"{self._origin}\0{payload}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def message_blocks(*fields: Fields) -> dict[str, list[Any]]:
    blocks: dict[str, list[Any]] = {}
    for name in OF_MESSAGE:
        found = [block for each in fields if isinstance(each.get(name), list) for block in each[name]]
        if found:
            blocks[name] = join_pieces(found)
    return blocks


def join_pieces(pieces: Sequence[Any]) -> list[Any]:
    """Return blocks of which a stream has sent pieces. A signature ends a block."""
    blocks: list[Any] = []
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        last = blocks[-1] if blocks else None
        if last is None or last.get("signature") or not _is_same(last, piece):
            blocks.append(dict(piece))
            continue
        for name, value in piece.items():
            if name in TEXTS and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value not in (None, ""):
                last[name] = value
    return blocks


def _is_same(block: Fields, piece: Fields) -> bool:
    """Return true if a piece continues a block. A block without a text, such as encrypted data, comes whole."""
    has_text = any(name in piece for name in TEXTS) and any(name in block for name in TEXTS)
    return has_text and (block.get("type"), block.get("index")) == (piece.get("type"), piece.get("index"))
