"""ConverseStream's events as deltas: a state machine without I/O.

What the events do not say by themselves: text and reasoning open without a start event; a block may lack its stop
event; usage comes after the stop reason; a stream that ends without a stop reason was cut off. A signature and redacted
content are handed on when their block ends, because they may come in pieces.
"""

import logging
from collections.abc import Mapping
from typing import Any

from ag_ui.core import TokenUsage
from msgspec import Struct, field

from agui_container.models.bedrock.failures import StreamFault
from agui_container.models.bedrock.reasoning_signature import sign_redacted, sign_text
from agui_container.ports import (
    Delta,
    EncryptedDelta,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)

logger = logging.getLogger(__name__)

STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOLS,
    "max_tokens": StopReason.LENGTH,
    "guardrail_intervened": StopReason.FILTERED,
    "content_filtered": StopReason.FILTERED,
}
FAILED_STOPS = frozenset({"malformed_model_output", "malformed_tool_use", "model_context_window_exceeded"})
"""Stop reasons that are failures; their names are rows of ``failures.TABLE``."""


class _ReasoningPart(Struct):
    index: int
    text: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    redacted: list[bytes] = field(default_factory=list)


class BedrockStreamParser:
    """One answer. ``feed`` it every event, then ``finish``.

    ``tool_names`` maps the names on the wire to the names that the agent knows.
    """

    def __init__(self, model_id: str, tool_names: Mapping[str, str]) -> None:
        self._model_id = model_id
        self._tool_names = tool_names
        self._thought: _ReasoningPart | None = None
        self._calls: dict[int, bool] = {}
        self._foreign: set[int] = set()
        self._stop: str | None = None
        self._counted = False

    @property
    def is_complete(self) -> bool:
        """Whether the model has said everything and said it well; usage may still be missing."""
        return self._stop is not None and self._stop not in FAILED_STOPS

    @property
    def is_ended(self) -> bool:
        """Whether nothing of interest can follow."""
        return self._stop is not None and self._counted

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """The deltas of one event; an event of an unknown kind has none."""
        for kind, body in event.items():
            if kind == "contentBlockDelta":
                return self._delta(body["contentBlockIndex"], body["delta"])
            if kind == "contentBlockStart":
                return self._start(body["contentBlockIndex"], body["start"])
            if kind == "contentBlockStop":
                return self._end_reasoning()
            if kind == "messageStop":
                return self._stopped(body["stopReason"])
            if kind == "metadata":
                self._counted = True
                return [UsageDelta(usage_of(self._model_id, body["usage"]))]
        return []

    def finish(self) -> None:
        """Check the end.

        Raises:
            Fault: the answer is not complete, or ended badly.
        """
        if self._stop is None:
            raise StreamFault("incomplete")
        if not self.is_complete:
            raise StreamFault(self._stop)

    def _start(self, index: int, start: Mapping[str, Any]) -> list[Delta]:
        if "toolUse" not in start:
            return self._end_reasoning()
        use = start["toolUse"]
        if use.get("type") == "server_tool_use":
            # Bedrock runs this one itself.
            self._foreign.add(index)
            return self._end_reasoning()
        self._calls[index] = False
        name = self._tool_names.get(use["name"], use["name"])
        return [*self._end_reasoning(), ToolCallDelta(index, name=name)]

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        if "reasoningContent" in delta:
            return self._reasoning(index, delta["reasoningContent"])
        sealed = self._end_reasoning()
        if delta.get("text"):
            return [*sealed, TextDelta(delta["text"])]
        if "toolUse" in delta:
            return [*sealed, *self._arguments(index, delta["toolUse"]["input"])]
        return sealed

    def _arguments(self, index: int, arguments: str) -> list[Delta]:
        if not arguments or index in self._foreign:
            return []
        if index not in self._calls:
            raise StreamFault("nameless_call")
        self._calls[index] = True
        return [ToolCallDelta(index, arguments)]

    def _reasoning(self, index: int, piece: Mapping[str, Any]) -> list[Delta]:
        sealed = self._end_reasoning() if self._thought and self._thought.index != index else []
        thought = self._thought = self._thought or _ReasoningPart(index)
        if piece.get("signature"):
            thought.signature.append(piece["signature"])
        if piece.get("redactedContent"):
            thought.redacted.append(piece["redactedContent"])
        if not piece.get("text"):
            return sealed
        thought.text.append(piece["text"])
        return [*sealed, ReasoningDelta(piece["text"])]

    def _end_reasoning(self) -> list[Delta]:
        """End the reasoning block that is open."""
        thought, self._thought = self._thought, None
        if thought is None:
            return []
        if thought.redacted:
            return [EncryptedDelta(sign_redacted(self._model_id, b"".join(thought.redacted)))]
        if thought.signature:
            return [EncryptedDelta(sign_text(self._model_id, "".join(thought.text), "".join(thought.signature)))]
        return []

    def _stopped(self, reason: str) -> list[Delta]:
        self._stop = reason
        sealed = self._end_reasoning()
        if reason in FAILED_STOPS:
            return sealed
        if reason not in STOPS:
            logger.warning("reason=<%s> | an unknown stop reason", reason)
        stop = STOPS.get(reason, StopReason.TOOLS if self._calls else StopReason.END)
        if stop not in (StopReason.TOOLS, StopReason.END):
            return [*sealed, StopDelta(stop)]
        # A call without arguments sends none; clients want JSON. A call that was cut short is left as it is.
        empty = [ToolCallDelta(index, "{}") for index, begun in self._calls.items() if not begun]
        return [*sealed, *empty, StopDelta(stop)]


def usage_of(model_id: str, usage: Mapping[str, int]) -> TokenUsage:
    """Bedrock's counts in AG-UI's accounting: Bedrock reports cache reads and writes beside the input, not in it."""
    read, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    input_tokens = usage["inputTokens"] + (read or 0) + (written or 0)
    return TokenUsage(
        provider="bedrock",
        model=model_id.rpartition("/")[2],  # an ARN names the account
        input_tokens=input_tokens,
        output_tokens=usage["outputTokens"],
        total_tokens=input_tokens + usage["outputTokens"],
        cached_input_tokens=read,
        cache_write_input_tokens=written,
    )
