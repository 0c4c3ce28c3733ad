"""A prompt as the request of ConverseStream: messages, tools, names and options.

Bedrock requires: user and assistant messages alternate, and a user message is first and last; no text is blank; every
``toolUse`` is answered once, in the very next message, which answers nothing else; reasoning is never last; names of
tools have at most 64 characters of ``[a-zA-Z0-9_-]``. If a history broke one of these rules, every later request would
be refused.

Rules:

- Pure: the same prompt and options give the same request. The same name always becomes the same wire name, and calls
  are numbered through the conversation, so that cached prompts stay cached.
- A call without a result is answered with the empty string.

Source: ConverseStream, Message and ToolResultBlock in the Amazon Bedrock Runtime API reference.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct, field

from agui_container.models.bedrock.media import IN_FAILED_RESULT, Block, MediaConverter, limit_media
from agui_container.models.bedrock.options import BedrockOptions, CachePlace, Guardrail
from agui_container.models.bedrock.reasoning_signature import verify_reasoning
from agui_container.models.tool_schemas import ProviderTools, wire_call_id, wire_name, wire_names
from agui_container.ports import MediaDroppedDelta, Prompt
from agui_container.ports.tool import for_models
from agui_container.protocol.strict_json import parse_object
from agui_core.transcript import has_failed
from agui_core.turns import IndexedCall, index_calls

logger = logging.getLogger(__name__)

FIRST_USER_TEXT = "(The conversation begins.)"
"""Text of the user message that is added at the beginning if Bedrock requires one there."""

CALLS_TEXT, NO_ANSWER_TEXT = "(Tools are called.)", "(No answer was given.)"
"""Texts of the messages between text and calls, and between results and text, of models that do not take both."""
NO_MIXED_TURNS = re.compile(r"(?:^|[./])(?:meta|mistral)\.")
"""Ids of models that do not take text in a message with calls or results."""
OF_TOOLS = frozenset({"toolUse", "toolResult", "reasoningContent"})
"""Blocks that stay together with calls. Reasoning must not be the last block of a message."""


class _Turn(Struct):
    role: str
    blocks: list[Block] = field(default_factory=list)
    answers: list[tuple[str, ToolMessage | None]] = field(default_factory=list)
    """Wire ids of the calls, and their results."""


class BedrockHistory:
    """Bedrock's view of a conversation, built by adding messages in order. ``tools`` were called in it."""

    def __init__(self, model_id: str) -> None:
        self.system: list[str] = []
        self.tools: list[str] = []
        self._model_id = model_id
        self._turns: list[_Turn] = []
        self._numbers = count(1)
        self._media = MediaConverter()

    @classmethod
    def of(cls, messages: Sequence[Message], model_id: str) -> "BedrockHistory":
        history = cls(model_id)
        for message, calls in zip(messages, index_calls(messages), strict=True):
            history.add(message, calls)
        return history

    def add(self, message: Message, calls: Sequence[IndexedCall]) -> None:
        """Add the next message and the calls that it makes, with their results.

        Activity messages are ignored, because they are only for display.
        """
        if isinstance(message, UserMessage):
            self._open_turn("user").blocks.extend(self._media.blocks(message.id, message.content))
        elif isinstance(message, AssistantMessage):
            self._add_answer(message, calls)
        elif isinstance(message, ReasoningMessage):
            self._add_reasoning(message)
        elif isinstance(message, (SystemMessage, DeveloperMessage)):
            self.system.append(message.content)

    @property
    def dropped(self) -> Sequence[MediaDroppedDelta]:
        return self._media.dropped.reports

    @property
    def messages(self) -> list[dict[str, Any]]:
        merged: list[dict[str, Any]] = []
        for turn in self._turns:
            _append(merged, turn.role, turn.blocks if turn.role == "user" else _without_trailing_reasoning(turn.blocks))
            _append(merged, "user", self._answers(turn))
        if merged and merged[0]["role"] == "assistant":
            merged.insert(0, {"role": "user", "content": [{"text": FIRST_USER_TEXT}]})
        for message in merged:
            if message["role"] == "user":
                message["content"] = limit_media(message["content"], self._media)
        return merged

    def _open_turn(self, role: str) -> _Turn:
        """Return the turn that new blocks of ``role`` belong to. A turn with tool calls accepts no more blocks."""
        if not self._turns or self._turns[-1].role != role or self._turns[-1].answers:
            self._turns.append(_Turn(role))
        return self._turns[-1]

    def _add_answer(self, message: AssistantMessage, calls: Sequence[IndexedCall]) -> None:
        turn = self._open_turn("assistant")
        turn.blocks.extend(self._media.blocks(message.id, message.content or ""))
        for each in calls:
            wire_id = wire_call_id(next(self._numbers))
            turn.answers.append((wire_id, each.result))
            turn.blocks.append(_tool_use(each.call, wire_id))
            self.tools.append(each.call.function.name)

    def _add_reasoning(self, message: ReasoningMessage) -> None:
        content = verify_reasoning(self._model_id, message.content, message.encrypted_value)
        if content is not None:
            self._open_turn("assistant").blocks.append({"reasoningContent": content})

    def _answers(self, turn: _Turn) -> list[Block]:
        return [_tool_result(wire_id, result, self._media) for wire_id, result in turn.answers]


def _without_mixed_turns(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with calls and results in messages of their own, and a text of the other role between."""
    separated: list[dict[str, Any]] = []
    for message in messages:
        role, content = message["role"], message["content"]
        of_tools = [block for block in content if OF_TOOLS & block.keys()]
        others = [block for block in content if not OF_TOOLS & block.keys()]
        first, second = (of_tools, others) if role == "user" else (others, of_tools)
        has_tools = any({"toolUse", "toolResult"} & block.keys() for block in of_tools)
        if not (has_tools and others):
            separated.append(message)
            continue
        between = ("assistant", NO_ANSWER_TEXT) if role == "user" else ("user", CALLS_TEXT)
        separated.append({"role": role, "content": first})
        separated.append({"role": between[0], "content": [{"text": between[1]}]})
        separated.append({"role": role, "content": second})
    return separated


def _append(messages: list[dict[str, Any]], role: str, blocks: Sequence[Block]) -> None:
    if not blocks:
        return
    if not messages or messages[-1]["role"] != role:
        messages.append({"role": role, "content": []})
    messages[-1]["content"].extend(blocks)


def _without_trailing_reasoning(blocks: Sequence[Block]) -> Sequence[Block]:
    end = len(blocks)
    while end and "reasoningContent" in blocks[end - 1]:
        end -= 1
    return blocks[:end]


def _tool_use(call: ToolCall, wire_id: str) -> Block:
    name, given = wire_name(call.function.name), parse_object(call.function.arguments)
    arguments = {"invalid_json": call.function.arguments} if given is None else given
    return {"toolUse": {"toolUseId": wire_id, "name": name, "input": arguments}}


def _tool_result(wire_id: str, answer: ToolMessage | None, media: MediaConverter) -> Block:
    """Return the block of a result. A successful result is the only place where Bedrock accepts empty text."""
    content = media.blocks(answer.id, for_models(answer.content)) if answer else []
    if answer is None or not has_failed(answer):
        return {"toolResult": {"toolUseId": wire_id, "content": content or [{"text": ""}]}}
    # Claude accepts only text in a failed result.
    texts = [block if "text" in block else media.drop(block, IN_FAILED_RESULT) for block in content]
    return {"toolResult": {"toolUseId": wire_id, "content": texts or [{"text": "The tool failed."}], "status": "error"}}


class Request(Struct, frozen=True):
    """A request. ``body`` are the arguments of ``converse_stream``, and ``tool_names`` are by wire name."""

    body: Mapping[str, object]
    tool_names: Mapping[str, str]
    dropped: Sequence[MediaDroppedDelta] = ()


PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Pattern of the names of a tool's arguments. Claude refuses any other name."""


def bedrock_tools(model_id: str = "") -> ProviderTools:
    return ProviderTools(model_id, PROPERTY_NAME)


def request_of(
    model_id: str, options: BedrockOptions, prompt: Prompt, tools: Mapping[str, ToolSpec] | None = None
) -> Request:
    """Leave out empty fields. ``tools`` are the prompt's in the form that Bedrock takes, by wire name."""
    tools = bedrock_tools().convert(prompt.tools) if tools is None else tools
    history = BedrockHistory.of(prompt.messages, model_id)
    names = wire_names([*(tool.name for tool in prompt.tools), *history.tools])
    body = {
        "modelId": model_id,
        "messages": _messages(history, model_id, options),
        "system": _system([prompt.system, *history.system], options),
        "toolConfig": _tool_config(tools, history.tools, options),
        "inferenceConfig": _inference(options),
        "guardrailConfig": _guardrail(options.guardrail),
        "additionalModelRequestFields": dict(options.additional_fields),
    }
    return Request({key: value for key, value in body.items() if value}, names, history.dropped)


def _messages(history: BedrockHistory, model_id: str, options: BedrockOptions) -> list[dict[str, Any]]:
    messages = history.messages
    is_split = bool(NO_MIXED_TURNS.search(model_id)) if options.split_turns is None else options.split_turns
    messages = _without_mixed_turns(messages) if is_split else messages
    for last in messages[-1:]:
        last["content"].extend(_cache_point(CachePlace.MESSAGES, options))
    return messages


def _system(texts: Sequence[str], options: BedrockOptions) -> list[Block]:
    blocks: list[Block] = [{"text": text} for text in texts if text.strip()]
    return [*blocks, *_cache_point(CachePlace.SYSTEM, options)] if blocks else []


def _tool_config(offered: Mapping[str, ToolSpec], called: Sequence[str], options: BedrockOptions) -> dict[str, Any]:
    """Describe called tools by name without others: Bedrock refuses calls in a request without tools."""
    tools = offered or bedrock_tools().convert([ToolSpec(name=name, description="") for name in called])
    specs = [_tool(name, tool) for name, tool in tools.items()]
    return {"tools": [*specs, *_cache_point(CachePlace.TOOLS, options)]} if specs else {}


def _tool(name: str, tool: ToolSpec) -> Block:
    spec: dict[str, Any] = {"name": name, "inputSchema": {"json": tool.parameters}}
    if tool.description.strip():
        spec["description"] = tool.description
    return {"toolSpec": spec}


def _cache_point(place: CachePlace, options: BedrockOptions) -> list[Block]:
    if place not in options.cache:
        return []
    ttl = {"ttl": options.cache_ttl} if options.cache_ttl else {}
    return [{"cachePoint": {"type": "default", **ttl}}]


def _inference(options: BedrockOptions) -> dict[str, Any]:
    chosen = {
        "maxTokens": options.max_tokens,
        "temperature": options.temperature,
        "topP": options.top_p,
        "stopSequences": list(options.stop_sequences) or None,
    }
    return {key: value for key, value in chosen.items() if value is not None}


def _guardrail(guardrail: Guardrail | None) -> dict[str, Any]:
    if guardrail is None:
        return {}
    chosen = {
        "guardrailIdentifier": guardrail.id,
        "guardrailVersion": guardrail.version,
        "streamProcessingMode": guardrail.mode,
        "trace": guardrail.trace,
    }
    return {key: value for key, value in chosen.items() if value is not None}
