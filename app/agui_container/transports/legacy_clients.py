"""Events for clients from before AG-UI 1.0, which fail a whole run over an outcome or a result of a later shape.

Rule: who sends a ``RunAgentInput`` without ``protocolVersion`` is such a client. It gets the same events with the same
ids in the same order; what its schemas refuse is taken out, nothing is made up, and what is lost by it is in the log.
Sources: AG-UI spec 1.1, basic/versioning; the schemas of ``@ag-ui/core`` 0.0.59.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from agui_container.protocol.parser import CommandRequest, Request
from agui_container.protocol.wire import envelope
from agui_container.transports.formats import SseFormat

logger = logging.getLogger(__name__)


class LegacySseFormat(SseFormat):
    """Server-Sent Events for a client from before AG-UI 1.0."""

    def body_now(self, batch: envelope.Batch) -> bytes:
        """One write for a batch."""
        return envelope.sse_frames([reduce_event(event) for event in batch.data], batch.first)


def is_legacy(asked: Request) -> bool:
    """Whether a client from before AG-UI 1.0 asks. A command by itself is none of AG-UI's, so who sends it knows us."""
    if isinstance(asked, CommandRequest):
        return asked.is_legacy_client
    return asked.run_input.protocol_version is None


def reduce_event(data: bytes) -> bytes:
    """An event's JSON as such a client takes it; that of nearly all events, untouched."""
    if not data.startswith(HEADS):
        return data
    event = orjson.loads(data)
    REDUCE[event["type"]](event)
    return orjson.dumps(event)


def _outcome(event: dict[str, Any]) -> None:
    """An outcome of a later shape is left out, as before there were any: then the open calls are the client's."""
    match event.get("outcome"):
        case {"type": "success", "pendingToolCallIds": _}:
            del event["outcome"]
        case {"type": "cancelled"}:
            del event["outcome"]
            _warn("RUN_FINISHED lacks the outcome `cancelled`", event["runId"])


def _content(event: dict[str, Any]) -> None:
    """The text of a result that has parts."""
    parts = event["content"]
    if isinstance(parts, list):
        event["content"] = "".join(part["text"] for part in parts if part["type"] == "text")
        if any(part["type"] != "text" for part in parts):
            _warn("a tool's result lacks its images, audio and files", event["toolCallId"])


def _messages(event: dict[str, Any]) -> None:
    for message in event["messages"]:
        if message["role"] == "tool":
            _content(message)


def _warn(lost: str, where: str) -> None:
    logger.warning("%s (%s): a client that declares no protocolVersion is from before AG-UI 1.0", lost, where)


REDUCE: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "RUN_FINISHED": _outcome,
    "TOOL_CALL_RESULT": _content,
    "MESSAGES_SNAPSHOT": _messages,
}
HEADS = tuple(b'{"type":"%b"' % name.encode() for name in REDUCE)
