"""A server that speaks ConverseStream, and its responses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.models.bedrock.frames import frame
from tests.models.bedrock.rules import broken_rules
from tests.models.wire import ReceivedRequest, WireResponse, WireServer

Event = Mapping[str, Any]


def answers(*events: Event, **more: Any) -> WireResponse:  # noqa: ANN401
    """Answer with the frames of some events."""
    headers = {"Content-Type": "application/vnd.amazon.eventstream"}
    return WireResponse([frame(event) for event in events], headers=headers, **more)


def refuses(status: int = 200, error: str = "", message: str = "", retry_after: str = "") -> WireResponse:
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": f"{error}:x"}
    headers |= {"Retry-After": retry_after} if retry_after else {}
    return WireResponse([json.dumps({"message": message}).encode()], status, headers)


def scripted(answer: Mapping[str, Any]) -> WireResponse:
    """Return the response that a scenario describes."""
    return answers(*answer["events"]) if "events" in answer else refuses(**answer)


@dataclass
class BedrockServer(WireServer):
    """``requests`` are the bodies as parsed JSON, with the model id under ``modelId``."""

    broken: list[str] = field(default_factory=list)

    def will(self, *given: WireResponse | Sequence[Event]) -> list[WireResponse]:
        made = [each if isinstance(each, WireResponse) else answers(*each) for each in given]
        self.gives(*made)
        return made

    def read(self, request: ReceivedRequest) -> dict[str, Any]:
        method, path, _ = request.line.split()
        _, model, model_id, operation = path.split("/")
        assert (method, model, operation) == ("POST", "model", "converse-stream")
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256")
        body = {**request.json, "modelId": unquote(model_id)}
        self.broken.extend(broken_rules(body))
        return body
