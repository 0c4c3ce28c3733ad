"""A prompt as the body of a chat completions request.

Rules:

- Every tool call is answered once, directly after its message, and no other tool message is sent. The history comes
  from clients, so results may be missing, repeated or misplaced, and servers refuse such a conversation.
- Only inline data is sent. A URL would make the provider fetch an address that a stranger chose, and a file handle is
  valid only for its issuer. Parts that servers would refuse are not sent either, because they stay in the history:
  data that is no base64, and image formats that some servers cannot read. The model reads a note in place of each
  omitted part, and the log has a warning. Blank text of the user is left out without a note.
- Calls get new ids, numbered through the conversation. They are the same in every request, so a provider's prompt
  cache stays valid.
- A valid tool name stays as it is. Any other name loses its invalid characters and gets a hash of the original. So the
  same tool has the same name in every request: in the tools, in the history, and in the provider's cache.

Source: "Create chat completion" in the OpenAI API reference.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
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

from agui_container.models.media import (
    NOT_BASE64,
    DroppedMedia,
    decode_base64,
    decode_text,
    image_kind,
    is_text,
    why_not_inline,
)
from agui_container.models.openai.opaque_fields import OF_CALL, OpaqueFields, message_blocks
from agui_container.models.tool_schemas import ProviderTools, wire_call_id, wire_name, wire_names
from agui_container.ports import MediaDroppedDelta, Prompt
from agui_container.ports.tool import for_models
from agui_container.protocol.strict_json import parse_object
from agui_core.transcript import has_failed
from agui_core.turns import IndexedCall, index_calls


class ToolNames:
    def __init__(self, names: Iterable[str]) -> None:
        self._originals = wire_names(names)  # the first wins: this server's own tools come before those of clients

    def original(self, name: str) -> str:
        """A name that no tool has stays as it is."""
        return self._originals.get(name, name)

    def is_tool(self, name: str) -> bool:
        return name in self._originals

    def begins(self, name: str) -> bool:
        return any(each.startswith(name) for each in self._originals)

    def is_whole(self, name: str) -> bool:
        """Return true if no tool has a longer wire name that begins with this text."""
        return not any(each.startswith(name) and each != name for each in self._originals)


Json = Mapping[str, object]

EMPTY = "it is empty"
ONLY_TEXT = "only text is sent in a tool result"
UNKNOWN_FORMAT = "the server takes PNG, JPEG, GIF, WebP, WAV, MP3, PDF and text"
"""Reasons for which a part cannot be sent."""

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def user_content(message: UserMessage, dropped: DroppedMedia) -> str | list[Json]:
    """Return one string without media, which every server understands; empty for a blank message."""
    if isinstance(message.content, str):
        return message.content if message.content.strip() else ""
    parts: list[Json] = []
    for index, part in enumerate(message.content):
        if isinstance(part, TextPart) and not part.text.strip():
            continue
        media = {"type": "text", "text": text} if (text := _text(part)) is not None else _media(part)
        if isinstance(media, str):
            media = {"type": "text", "text": dropped.drop(message.id, index, part, media)}
        parts.append(media)
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def tool_text(message: ToolMessage, pictures: list[Json] | None, dropped: DroppedMedia) -> str:
    """Return the content of a tool message. The API allows only text there, so its pictures go to ``pictures``."""
    content = for_models(message.content)
    if isinstance(content, str):
        return content
    lines = []
    for index, part in enumerate(content):
        text = _text(part)
        media = _media(part) if isinstance(part, ImagePart) and pictures is not None else ONLY_TEXT
        if text is None and pictures is not None and not isinstance(media, str):
            pictures.append(media)
            text = f"[picture {len(pictures)}]"
        reason = media if isinstance(media, str) else ONLY_TEXT
        lines.append(dropped.drop(message.id, index, part, reason) if text is None else text)
    return "\n".join(lines)


def _text(part: ContentPart) -> str | None:
    """Return the text of a text part or of an inline text file, else None. The API takes no other files than PDF."""
    if isinstance(part, TextPart):
        return part.text
    if not isinstance(part, DocumentPart) or not isinstance(part.source, DataSource) or not is_text(_mime(part.source)):
        return None
    return decode_text(decode_base64(part.source.value) or b"") or None


def _mime(source: DataSource) -> str:
    return source.mime_type.partition(";")[0].strip().lower()


def _media(part: ContentPart) -> Json | str:
    """Return a part that is no text in the form of the API, or the reason for which it cannot be sent."""
    if isinstance(part, TextPart) or not isinstance(part.source, DataSource):
        return why_not_inline(part)
    value, mime_type = part.source.value, _mime(part.source)
    data = decode_base64(value)
    if not data:
        return NOT_BASE64 if data is None else EMPTY
    value = base64.b64encode(data).decode()
    if isinstance(part, ImagePart):
        kind = image_kind(data)
        url = f"data:image/{kind};base64,{value}"
        return {"type": "image_url", "image_url": {"url": url}} if kind else UNKNOWN_FORMAT
    if isinstance(part, AudioPart) and mime_type in _AUDIO_FORMATS:
        return {"type": "input_audio", "input_audio": {"data": value, "format": _AUDIO_FORMATS[mime_type]}}
    if isinstance(part, DocumentPart) and mime_type == "application/pdf":
        url = f"data:application/pdf;base64,{value}"
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    return UNKNOWN_FORMAT


UNANSWERED = "Error: there is no result; the call was interrupted."
"""Result of a call that was never answered."""
PICTURES_TEXT = "(Pictures of the tool results above, in order.)"
"""First text of the user message with the pictures of tool results, which the API does not allow there."""
FAILED_RESULT = "The tool failed."
"""Result of a call that failed without a text."""
SILENCE = "(No answer was given.)"
"""Assistant message between a tool message and a user message, because some servers require one there."""


@dataclass(frozen=True, slots=True)
class OpenAIOptions:
    """Fields and headers of a request besides the prompt.

    Attributes:
        body: additional fields (``temperature``, ``max_tokens``, ``reasoning_effort``, …). None removes a field.
        headers: additional headers. They may contain keys, so ``repr`` leaves them out.
        reasoning_field: field of assistant messages in which the server expects its earlier reasoning. If None,
            reasoning is sent in ``reasoning_content`` once the server has sent it there, or has named it as missing. If
            empty, it is not sent.
        context_window: tokens of the model's context window, for clients. None means the known one of the model.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    body: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reasoning_field: str | None = None
    context_window: Annotated[int, Field(ge=1)] | None = None


class RequestFormat(Struct):
    """Format of the requests to one server, as far as it is known what the server accepts."""

    reasoning_field: str | None = None
    opaque_fields: OpaqueFields = OpaqueFields("")
    has_usage: bool = True
    has_tool_pictures: bool = True


class ChatRequest(Struct, frozen=True):
    """A request. ``body`` is JSON, and ``dropped`` are the parts of messages that it does not have."""

    body: bytes
    dropped: Sequence[MediaDroppedDelta]


def request_of(
    model: str,
    prompt: Prompt,
    options: OpenAIOptions,
    wire_format: RequestFormat | None = None,
    tools: Mapping[str, ToolSpec] | None = None,
) -> ChatRequest:
    """``tools`` are the prompt's in the form that providers take, by wire name."""
    wire_format = wire_format or RequestFormat(options.reasoning_field)
    tools = ProviderTools().convert(prompt.tools) if tools is None else tools
    body: dict[str, object] = {"model": model}
    if wire_format.has_usage:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [_tool(name, tool) for name, tool in tools.items()]
    body |= options.body
    dropped = DroppedMedia()
    body |= {"messages": messages_of(prompt, wire_format, dropped), "stream": True}
    fields = {name: value for name, value in body.items() if value is not None}
    data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    return ChatRequest(data, dropped.reports)


def _tool(name: str, tool: ToolSpec) -> Json:
    function = {"name": name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def messages_of(prompt: Prompt, wire_format: RequestFormat, dropped: DroppedMedia) -> list[Json]:
    """Results follow their calls, and an assistant message follows the results."""
    messages: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    reasoning: list[ReasoningMessage] = []
    numbers = count(1)
    for message, calls in zip(prompt.messages, index_calls(prompt.messages), strict=True):
        if isinstance(message, ToolMessage):
            continue
        if isinstance(message, ReasoningMessage):
            reasoning.append(message)
            continue
        if isinstance(message, AssistantMessage):
            numbered = [(wire_call_id(next(numbers)), call) for call in calls]
            _append_exchange(messages, _exchange_messages(message, numbered, reasoning, wire_format, dropped))
        else:
            messages.extend(_text_message(message, _last_role(messages), dropped))
        reasoning = []
    return messages


def _append_exchange(messages: list[Json], exchange: Sequence[Json]) -> None:
    """Append an exchange. Its text joins that of an assistant message before it, because some servers require it."""
    if exchange and messages and messages[-1]["role"] == "assistant":
        before, first = messages.pop(), exchange[0]
        joined = {name: _joined(before.get(name), first.get(name)) for name in {**before, **first}}
        joined = {name: value for name, value in joined.items() if name not in {"role", "tool_calls"}}
        exchange = [{**first, **joined}, *exchange[1:]]
    messages.extend(exchange)


def _joined(before: object, after: object) -> object:
    """Join the values of one field of two assistant messages: lists of blocks, or lines of text."""
    if isinstance(before, list) or isinstance(after, list):
        return [*(before if isinstance(before, list) else ()), *(after if isinstance(after, list) else ())]
    return "\n".join(str(each) for each in (before, after) if each) or None


def _last_role(messages: Sequence[Json]) -> object:
    return next((message["role"] for message in reversed(messages) if message["role"] != "system"), None)


def _text_message(message: Message, last_role: object, dropped: DroppedMedia) -> Sequence[Json]:
    if isinstance(message, UserMessage):
        content = user_content(message, dropped)
        gap = ({"role": "assistant", "content": SILENCE},) if last_role == "tool" else ()
        return (*gap, {"role": "user", "content": content}) if content else ()
    if isinstance(message, (SystemMessage, DeveloperMessage)):
        # Only OpenAI knows the role "developer", and it treats "system" as the same.
        return ({"role": "system", "content": message.content},)
    return ()


def _exchange_messages(
    message: AssistantMessage,
    calls: Sequence[tuple[str, IndexedCall]],
    reasoning: Sequence[ReasoningMessage],
    wire_format: RequestFormat,
    dropped: DroppedMedia,
) -> Sequence[Json]:
    text, opaque = message.content, wire_format.opaque_fields
    if not calls and not text:
        return ()
    texts, name = [each.content for each in reasoning if each.content], wire_format.reasoning_field
    sealed = [each.encrypted_value for each in reasoning] + [each.call.encrypted_value for _, each in calls]
    assistant: dict[str, object] = {
        "role": "assistant",
        "content": text or None,
        **({name: "\n".join(texts)} if name and texts else {}),
        **message_blocks(*map(opaque.open, sealed)),
    }
    if not calls:
        return (assistant,)
    assistant["tool_calls"] = [_call(id_, each.call, opaque) for id_, each in calls]
    pictures: list[Json] | None = [] if wire_format.has_tool_pictures else None
    results = [_result(id_, each.result, pictures, dropped) for id_, each in calls]
    if not pictures:
        return assistant, *results
    shown = {"role": "user", "content": [{"type": "text", "text": PICTURES_TEXT}, *pictures]}
    return assistant, *results, {"role": "assistant", "content": SILENCE}, shown


def _call(id_: str, call: ToolCall, opaque: OpaqueFields) -> Json:
    function = {"name": wire_name(call.function.name), "arguments": _arguments(call.function.arguments)}
    extra = {name: value for name, value in opaque.open(call.encrypted_value).items() if name == OF_CALL}
    return {"id": id_, "type": "function", "function": function, **extra}


def _arguments(text: str) -> str:
    """Return the arguments of a call as a JSON object, because local servers fail on anything else."""
    return json.dumps({"invalid": text}, ensure_ascii=False) if parse_object(text) is None else text or "{}"


def _result(id_: str, result: ToolMessage | None, pictures: list[Json] | None, dropped: DroppedMedia) -> Json:
    content = UNANSWERED if result is None else _result_text(result, pictures, dropped)
    return {"role": "tool", "tool_call_id": id_, "content": content}


def _result_text(result: ToolMessage, pictures: list[Json] | None, dropped: DroppedMedia) -> str:
    """Return the text of a result. That of a failed one says so, because the API has no other place for it."""
    text = tool_text(result, pictures, dropped)
    if not has_failed(result):
        return text
    return text if text.startswith("Error") else f"Error: {text or FAILED_RESULT}"
