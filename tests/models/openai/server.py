"""What a server of chat completions sends."""

import json
from typing import Any

from tests.models.wire import WireResponse

SSE = "text/event-stream; charset=utf-8"


def sends(*pieces: bytes, kind: str = SSE, **more: Any) -> WireResponse:  # noqa: ANN401
    """Answer with a stream, or with a body of another type."""
    return WireResponse(pieces, headers={"Content-Type": kind}, **more)


def sse(*events: object) -> list[bytes]:
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return [f"data: {text}\n\n".encode() for text in texts]


def says(text: str, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def speaks(*texts: str) -> WireResponse:
    return sends(*sse(*(says(text) for text in texts), says("", "stop"), "[DONE]"))


def refuses(status: int, body: object = None, **headers: str) -> WireResponse:
    named = {name.replace("_", "-"): value for name, value in {"content_type": "application/json", **headers}.items()}
    return WireResponse([json.dumps(body or {"error": {"message": "no"}}).encode()], status, named)
