"""The ConverseStream wire around any model: a request becomes a prompt, deltas become frames.

Reasoning is signed, and a signature that comes back on another text is refused, as by Claude. Only text is read: the
offline model looks at nothing else.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec

from agui_container.ports import Delta, Prompt, ReasoningDelta, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import AppError
from tests.models.bedrock import rules
from tests.models.bedrock.frames import frame

Json = Mapping[str, Any]


def signature_of(text: str) -> str:
    return hashlib.sha256(f"by the model: {text}".encode()).hexdigest()


def broken_rules(body: Json) -> list[str]:
    """Every rule that a request breaks, in words; signatures are looked at, too."""
    return [*rules.broken_rules(body), *_forged(body)]


def _forged(body: Json) -> Iterator[str]:
    for message in body["messages"]:
        for block in message["content"]:
            said = block.get("reasoningContent", {}).get("reasoningText")
            if said and said.get("signature") != signature_of(said["text"]):
                yield f"not signed by the model: {said}"


def prompt_of(body: Json) -> Prompt:
    first, *others = [block["text"] for block in body.get("system", ())] or [""]
    messages: list[Message] = [SystemMessage(id=f"s{at}", content=text) for at, text in enumerate(others)]
    for at, message in enumerate(body["messages"]):
        messages.extend(_said(f"m{at}", message) if message["role"] == "assistant" else _given(f"m{at}", message))
    return Prompt(first, messages, [_tool(tool["toolSpec"]) for tool in body.get("toolConfig", {}).get("tools", ())])


def _tool(spec: Json) -> ToolSpec:
    return ToolSpec(
        name=spec["name"], description=spec.get("description", ""), parameters=dict(spec["inputSchema"]["json"])
    )


def _said(key: str, message: Json) -> Iterator[Message]:
    blocks: Sequence[Json] = message["content"]
    for at, thought in enumerate(block["reasoningContent"] for block in blocks if "reasoningContent" in block):
        said = thought.get("reasoningText", {"text": ""})
        yield ReasoningMessage(id=f"{key}-r{at}", content=said["text"], encrypted_value=said.get("signature"))
    calls = [_call(block["toolUse"]) for block in blocks if "toolUse" in block]
    yield AssistantMessage(id=key, content=_text(blocks) or None, tool_calls=calls or None)


def _given(key: str, message: Json) -> Iterator[Message]:
    blocks: Sequence[Json] = message["content"]
    for at, result in enumerate(block["toolResult"] for block in blocks if "toolResult" in block):
        text = _text(result["content"])
        error = text if result.get("status") == "error" else None
        yield ToolMessage(id=f"{key}-t{at}", tool_call_id=result["toolUseId"], content=text, error=error)
    for at, block in enumerate(blocks):
        if "text" in block:  # Bedrock's roles take turns: what a user said in a row comes as blocks of one message
            yield UserMessage(id=f"{key}-u{at}", content=block["text"])


def _text(blocks: Sequence[Json]) -> str:
    return "\n".join(block["text"] for block in blocks if "text" in block)


def _call(use: Json) -> ToolCall:
    arguments = json.dumps(use["input"], ensure_ascii=False)
    return ToolCall(id=use["toolUseId"], function=FunctionCall(name=use["name"], arguments=arguments))


async def answer(deltas: AsyncIterator[Delta]) -> AsyncIterator[bytes]:
    """The frames of an answer; an ``AppError`` becomes an exception in the stream."""
    usage: TokenUsage | None = None
    blocks = Blocks()
    yield frame({"messageStart": {"role": "assistant"}})
    try:
        async for delta in deltas:
            if isinstance(delta, UsageDelta):
                usage = delta.usage
                continue
            yield b"".join(map(frame, blocks.feed(delta)))
    except AppError as error:
        yield frame({"exception": "modelStreamErrorException", "message": f"{error.message} (secret-host)"})
        return
    yield b"".join(map(frame, [*blocks.closed(), {"messageStop": {"stopReason": blocks.stop_reason}}]))
    if usage is not None:
        yield frame({"metadata": {"usage": _usage(usage), "metrics": {"latencyMs": 1}}})


def _usage(usage: TokenUsage) -> Json:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
    }


class Blocks:
    """Deltas as content blocks: one per stretch of text, stretch of reasoning, and call."""

    def __init__(self) -> None:
        self.stop_reason = "end_turn"
        self._kind: object = None
        self._index = -1
        self._thought = ""

    def feed(self, delta: Delta) -> Iterator[Json]:
        kind = ("call", delta.index) if isinstance(delta, ToolCallDelta) else type(delta)
        if kind != self._kind:
            yield from self.closed()
            self._kind, self._index = kind, self._index + 1
        if isinstance(delta, TextDelta):
            yield self._piece({"text": delta.text})
        elif isinstance(delta, ReasoningDelta):
            self._thought += delta.text
            yield self._piece({"reasoningContent": {"text": delta.text}})
        elif isinstance(delta, ToolCallDelta):
            yield from self._call(delta)

    def closed(self) -> Iterator[Json]:
        if self._kind is None:
            return
        if self._thought:
            yield self._piece({"reasoningContent": {"signature": signature_of(self._thought)}})
        yield {"contentBlockStop": {"contentBlockIndex": self._index}}
        self._kind, self._thought = None, ""

    def _call(self, delta: ToolCallDelta) -> Iterator[Json]:
        if delta.name:
            self.stop_reason = "tool_use"
            use = {"toolUse": {"toolUseId": f"tooluse_{delta.index}", "name": delta.name}}
            yield {"contentBlockStart": {"contentBlockIndex": self._index, "start": use}}
        yield self._piece({"toolUse": {"input": delta.arguments}})

    def _piece(self, delta: Json) -> Json:
        return {"contentBlockDelta": {"contentBlockIndex": self._index, "delta": delta}}
