"""ConverseStream's events as deltas: a state machine without I/O.

Properties of the stream: text and reasoning begin without a start event; a block may lack its stop event; usage comes
after the stop reason; a stream without a stop reason was cut off. A signature and redacted content may come in pieces,
so their delta is made when their block ends.

Source: ConverseStreamOutput in the Amazon Bedrock Runtime API reference.
"""

import logging
from collections.abc import Mapping
from typing import Any

from ag_ui.core import TokenUsage
from msgspec import Struct, field

from agui_container.log_values import format_fields
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
from agui_container.protocol.strict_json import whole_text

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
"""Stop reasons that are failures. Each is a key of ``failures.FAILURES``."""


MUST_SAY = frozenset({"end_turn", "tool_use"})
"""Stop reasons of an answer that has a text, reasoning or a call."""


class _ReasoningPart(Struct):
    index: int
    text: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    redacted: list[bytes] = field(default_factory=list)


class BedrockStreamParser:
    """Parser of one answer: ``feed`` every event, then ``finish``. ``tool_names`` are by wire name."""

    def __init__(self, model_id: str, tool_names: Mapping[str, str]) -> None:
        self._model_id = model_id
        self._tool_names = tool_names
        self._open_reasoning: _ReasoningPart | None = None
        self._calls: set[int] = set()
        self._server_calls: set[int] = set()
        self._stop_reason: str | None = None
        self._has_usage = False
        self._is_empty = True

    @property
    def is_complete(self) -> bool:
        """True if the answer ended without a failure. Usage may still be missing."""
        return self._stop_reason is not None and self._stop_reason not in FAILED_STOPS and not self._lacks_answer

    @property
    def _lacks_answer(self) -> bool:
        return self._is_empty and self._stop_reason in MUST_SAY

    @property
    def is_ended(self) -> bool:
        """True if stop reason and usage have been received, so that no useful event can follow."""
        return self._stop_reason is not None and self._has_usage

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return none for an event of an unknown kind. Raises ``StreamFault`` for arguments without a call."""
        deltas = self._deltas(event)
        self._is_empty = self._is_empty and all(isinstance(delta, UsageDelta) for delta in deltas)
        return deltas

    def _deltas(self, event: Mapping[str, Any]) -> list[Delta]:
        for kind, body in event.items():
            if kind == "contentBlockDelta":
                return self._on_delta(body["contentBlockIndex"], body["delta"])
            if kind == "contentBlockStart":
                return self._on_start(body["contentBlockIndex"], body["start"])
            if kind == "contentBlockStop":
                return self._end_reasoning()
            if kind == "messageStop":
                return self._on_stop(body["stopReason"])
            if kind == "metadata":
                self._has_usage = True
                return [UsageDelta(usage_of(self._model_id, body["usage"]))]
        return []

    def finish(self) -> None:
        """Raise ``StreamFault`` if the answer was cut off, or if its stop reason is a failure."""
        if self._stop_reason is None:
            raise StreamFault("incomplete")
        if self._lacks_answer:
            raise StreamFault("empty")
        if not self.is_complete:
            raise StreamFault(self._stop_reason)

    def _on_start(self, index: int, start: Mapping[str, Any]) -> list[Delta]:
        if "toolUse" not in start:
            return self._end_reasoning()
        use = start["toolUse"]
        if use.get("type") == "server_tool_use":
            # Bedrock runs this call itself.
            self._server_calls.add(index)
            return self._end_reasoning()
        self._calls.add(index)
        name = self._tool_names.get(use["name"], use["name"])
        return [*self._end_reasoning(), ToolCallDelta(index, name=name)]

    def _on_delta(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        if "reasoningContent" in delta:
            return self._reasoning(index, delta["reasoningContent"])
        reasoning_end = self._end_reasoning()
        if delta.get("text"):
            return [*reasoning_end, TextDelta(delta["text"])]
        if "toolUse" in delta:
            return [*reasoning_end, *self._arguments(index, delta["toolUse"]["input"])]
        return reasoning_end

    def _arguments(self, index: int, arguments: str) -> list[Delta]:
        if not arguments or index in self._server_calls:
            return []
        if index not in self._calls:
            raise StreamFault("nameless_call")
        return [ToolCallDelta(index, arguments)]

    def _reasoning(self, index: int, piece: Mapping[str, Any]) -> list[Delta]:
        reasoning_end = self._end_reasoning() if self._open_reasoning and self._open_reasoning.index != index else []
        part = self._open_reasoning = self._open_reasoning or _ReasoningPart(index)
        if piece.get("signature"):
            part.signature.append(piece["signature"])
        if piece.get("redactedContent"):
            part.redacted.append(piece["redactedContent"])
        if not piece.get("text"):
            return reasoning_end
        part.text.append(piece["text"])
        return [*reasoning_end, ReasoningDelta(piece["text"])]

    def _end_reasoning(self) -> list[Delta]:
        part, self._open_reasoning = self._open_reasoning, None
        if part is None:
            return []
        if part.redacted:
            return [EncryptedDelta(sign_redacted(self._model_id, b"".join(part.redacted)))]
        if part.signature:
            text = whole_text("".join(part.text))
            return [EncryptedDelta(sign_text(self._model_id, text, "".join(part.signature)))]
        return []

    def _on_stop(self, reason: str) -> list[Delta]:
        self._stop_reason = reason
        reasoning_end = self._end_reasoning()
        if reason in FAILED_STOPS or (self._lacks_answer and not reasoning_end):
            return reasoning_end
        if reason not in STOPS:
            logger.warning("unknown stop reason %s", format_fields({"reason": reason}))
        stop = STOPS.get(reason, StopReason.TOOLS if self._calls else StopReason.END)
        return [*reasoning_end, StopDelta(stop)]


def usage_of(model_id: str, usage: Mapping[str, int]) -> TokenUsage:
    """Bedrock does not include cache reads and writes in the input; AG-UI does."""
    read, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    input_tokens = usage["inputTokens"] + (read or 0) + (written or 0)
    return TokenUsage(
        provider="bedrock",
        model=model_id.rpartition("/")[2],  # an ARN contains the account id
        input_tokens=input_tokens,
        output_tokens=usage["outputTokens"],
        total_tokens=input_tokens + usage["outputTokens"],
        cached_input_tokens=read,
        cache_write_input_tokens=written,
    )
