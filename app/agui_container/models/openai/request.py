"""A prompt as the body of a chat completions request.

Rules:

- Every tool call is answered once, directly after its message, and no other tool message is sent. The history comes
  from clients, so results may be missing, repeated or misplaced, and servers refuse such a conversation.
- Only inline data is sent. A URL would make the provider fetch an address that a stranger chose, and a file handle is
  valid only for its issuer. Parts that servers would refuse are not sent either, because they stay in the history:
  data that is no base64, and image formats that some servers cannot read. The model reads a note in place of each
  omitted part, and the log has a warning.
- Calls get new ids, numbered through the conversation. Nine letters and digits satisfy the strictest server (Mistral).
  The ids are the same in every request, so a provider's prompt cache stays valid.
- A valid tool name stays as it is. Any other name loses its invalid characters and gets a hash of the original. So the
  same tool has the same name in every request: in the tools, in the history, and in the provider's cache.

Source: "Create chat completion" in the OpenAI API reference.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, ClassVar

from ag_ui.core import (
    AssistantMessage,
    AudioPart,
    ContentPart,
    DataSource,
    DeveloperMessage,
    DocumentPart,
    ImagePart,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic import ConfigDict, Field

from agui_container.models.images import decode_base64, decode_text, image_kind, is_text
from agui_container.ports import Prompt
from agui_container.protocol.conversation.transcript import repeats_error
from agui_container.runtime.log_values import format_fields

MAX_NAME = 64
_VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")
_HASH_LENGTH = 8


def wire_name(name: str) -> str:
    """Return the name that is sent to the server."""
    if _VALID.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_HASH_LENGTH]
    return f"{_INVALID.sub('_', name)[: MAX_NAME - _HASH_LENGTH - 1]}_{digest}"


class ToolNames:
    """Names of the tools of one prompt."""

    def __init__(self, names: Iterable[str]) -> None:
        self._originals: dict[str, str] = {}
        for name in names:
            # The first wins, because this server's own tools come before those of clients.
            self._originals.setdefault(wire_name(name), name)

    def original(self, name: str) -> str:
        """Return the tool's own name for a wire name. A name that no tool has stays as it is."""
        return self._originals.get(name, name)


class CallExchange(Struct, frozen=True):
    """An assistant message, and its calls with their results. The result is None for an unanswered call."""

    message: AssistantMessage
    calls: Sequence[tuple[ToolCall, ToolMessage | None]]


def group_exchanges(messages: Sequence[Message]) -> list[Message | CallExchange]:
    """Return the conversation with each tool message attached to its call.

    The first result of a call wins. Results of unknown calls are left out. If calls of one
    message share an id, the first wins.
    """
    results = _results(messages)
    conversation: list[Message | CallExchange] = []
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls = {call.id: call for call in reversed(message.tool_calls or ())}
            pairs = [(call, results.get((position, call.id))) for call in reversed(calls.values())]
            conversation.append(CallExchange(message, pairs))
        elif not isinstance(message, ToolMessage):
            conversation.append(message)
    return conversation


def _results(messages: Sequence[Message]) -> Mapping[tuple[int, str], ToolMessage]:
    """Map each call to its result. The key is (position of the message, call id), because ids may be reused later."""
    positions: dict[str, int] = {}
    results: dict[tuple[int, str], ToolMessage] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            positions.update((call.id, position) for call in message.tool_calls or ())
        elif isinstance(message, ToolMessage) and message.tool_call_id in positions:
            results.setdefault((positions[message.tool_call_id], message.tool_call_id), message)
    return results


logger = logging.getLogger(__name__)

Json = Mapping[str, object]

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def user_content(content: str | Sequence[ContentPart]) -> str | list[Json]:
    """Return the content of a user message. Without media it is one string, which every server understands."""
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def tool_text(content: str | Sequence[ContentPart]) -> str:
    """Return the content of a tool message. The API allows only text there."""
    if isinstance(content, str):
        return content
    texts = ((part, _text(part)) for part in content)
    return "\n".join(_note(part) if text is None else text for part, text in texts)


def _part(part: ContentPart) -> Json:
    text = _text(part)
    if text is not None:
        return {"type": "text", "text": text}
    return _media(part) or {"type": "text", "text": _note(part)}


def _text(part: ContentPart) -> str | None:
    """Return the text of a text part or of an inline text file, else None. The API takes no other files than PDF."""
    if isinstance(part, TextPart):
        return part.text
    if not isinstance(part, DocumentPart) or not isinstance(part.source, DataSource) or not is_text(_mime(part.source)):
        return None
    return decode_text(decode_base64(part.source.value) or b"") or None


def _mime(source: DataSource) -> str:
    return source.mime_type.partition(";")[0].strip().lower()


def _media(part: ContentPart) -> Json | None:
    if isinstance(part, TextPart) or not isinstance(part.source, DataSource):
        return None
    value, mime_type = part.source.value, _mime(part.source)
    data = decode_base64(value)
    if not data:
        return None
    if isinstance(part, ImagePart):
        kind = image_kind(data)
        return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{value}"}} if kind else None
    if isinstance(part, AudioPart) and mime_type in _AUDIO_FORMATS:
        return {"type": "input_audio", "input_audio": {"data": value, "format": _AUDIO_FORMATS[mime_type]}}
    if isinstance(part, DocumentPart) and mime_type == "application/pdf":
        url = f"data:application/pdf;base64,{value}"
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    return None


def _note(part: ContentPart) -> str:
    source = "" if isinstance(part, TextPart) else part.source.type
    logger.warning("content part dropped %s", format_fields({"part": part.type, "source": source}))
    return f"[{part.type} left out: this model cannot be given it]"


UNANSWERED = "Error: there is no result; the call was interrupted."
"""Result of a call that was never answered."""
GO_ON = "Continue."
"""User message that follows a final assistant message, because servers refuse a conversation that ends with one."""
SILENCE = "(No answer was given.)"
"""Assistant message between a tool message and a user message, because some servers require one there."""


@dataclass(frozen=True, slots=True)
class OpenAIOptions:
    """Fields and headers of a request besides the prompt.

    Attributes:
        body: additional fields (``temperature``, ``max_tokens``, ``reasoning_effort``, …). None removes a field.
        headers: additional headers. They may contain keys, so ``repr`` leaves them out.
        reasoning_field: field of assistant messages in which the server expects its earlier reasoning, such as
            ``reasoning_content``. If None, reasoning is not sent.
        context_window: tokens of the model's context window, for clients. None means the known one of the model.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    body: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reasoning_field: str | None = None
    context_window: Annotated[int, Field(ge=1)] | None = None


def request_body(model: str, prompt: Prompt, options: OpenAIOptions, *, usage: bool = True) -> bytes:
    """Return the request as JSON. ``usage`` requests a report of the tokens in the last chunk."""
    body: dict[str, object] = {"model": model}
    if usage:
        body["stream_options"] = {"include_usage": True}
    tools: dict[str, Json] = {}
    for tool in prompt.tools:
        tools.setdefault(wire_name(tool.name), tool_of(tool))
    if tools:
        body["tools"] = list(tools.values())
    body |= options.body
    body |= {"messages": messages_of(prompt, options.reasoning_field), "stream": True}
    fields = {name: value for name, value in body.items() if value is not None}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def tool_of(tool: ToolSpec) -> Json:
    """Return a function tool. A tool without a schema has no arguments."""
    schema = tool.parameters if isinstance(tool.parameters, dict) and tool.parameters else None
    function = {
        "name": wire_name(tool.name),
        "description": tool.description,
        "parameters": schema or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


def messages_of(prompt: Prompt, reasoning_field: str | None = None) -> list[Json]:
    """Return the conversation in the form of the API.

    Results follow their calls, an assistant message follows the results, and the last message is not an assistant's.
    """
    messages: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    reasoning_texts: list[str] = []
    numbers = count(1)
    for message in group_exchanges(prompt.messages):
        if isinstance(message, ReasoningMessage):
            reasoning_texts.append(message.content)
            continue
        if isinstance(message, CallExchange):
            reasoning = (
                {reasoning_field: "\n".join(reasoning_texts)} if reasoning_field and any(reasoning_texts) else {}
            )
            messages.extend(_exchange_messages(message, numbers, reasoning))
        else:
            messages.extend(_text_message(message, _last_role(messages)))
        reasoning_texts = []
    if _last_role(messages) == "assistant":
        messages.append({"role": "user", "content": GO_ON})
    return messages


def _last_role(messages: Sequence[Json]) -> object:
    """Return the role of the last message that is not a system message, or None."""
    return next((message["role"] for message in reversed(messages) if message["role"] != "system"), None)


def _text_message(message: Message, last_role: object) -> Sequence[Json]:
    if isinstance(message, UserMessage):
        gap = ({"role": "assistant", "content": SILENCE},) if last_role == "tool" else ()
        return *gap, {"role": "user", "content": user_content(message.content)}
    if isinstance(message, (SystemMessage, DeveloperMessage)):
        # Only OpenAI knows the role "developer", and it treats "system" as the same.
        return ({"role": "system", "content": message.content},)
    return ()


def _exchange_messages(exchange: CallExchange, numbers: Iterator[int], reasoning: Json) -> Sequence[Json]:
    assistant: dict[str, object] = {"role": "assistant", "content": exchange.message.content or None, **reasoning}
    if not exchange.calls:
        return (assistant,) if exchange.message.content else ()
    ids = [f"call{next(numbers):05d}" for _ in exchange.calls]
    assistant["tool_calls"] = [_call(id_, call) for id_, (call, _) in zip(ids, exchange.calls, strict=True)]
    results = [_result(id_, result) for id_, (_, result) in zip(ids, exchange.calls, strict=True)]
    return assistant, *results


def _call(id_: str, call: ToolCall) -> Json:
    function = {"name": wire_name(call.function.name), "arguments": _arguments(call.function.arguments)}
    return {"id": id_, "type": "function", "function": function}


def _arguments(text: str) -> str:
    """Return the arguments of a call as a JSON object, because local servers fail on anything else."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return (text or "{}") if isinstance(value, dict) else json.dumps({"invalid": text}, ensure_ascii=False)


def _result(id_: str, result: ToolMessage | None) -> Json:
    text = UNANSWERED if result is None else _with_error(result)
    return {"role": "tool", "tool_call_id": id_, "content": text}


def _with_error(result: ToolMessage) -> str:
    """Return the text of a result with its error. A text that begins with the error is only marked as one."""
    text = tool_text(result.content)
    if not result.error or (repeats_error(result, text) and text.startswith("Error:")):
        return text
    return f"Error: {text}" if repeats_error(result, text) else f"{text}\nError: {result.error}".strip()
