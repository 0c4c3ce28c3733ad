"""A prompt as the body of a chat completions request.

Rules:

- Every tool call is answered once, directly after its message, and no other tool message is sent. The history comes
  from clients, so results may be missing, repeated or misplaced, and servers refuse such a conversation.
- Only inline data is sent. A URL would make the provider fetch an address that a stranger chose, and a file handle is
  valid only for its issuer. Parts that servers would refuse are not sent either, because they stay in the history:
  data that is no base64, and image formats that some servers cannot read. The model reads a note in place of each
  omitted part, and the log has a warning. Blank text of the user is left out without a note.
- Calls get new ids, numbered through the conversation. Nine letters and digits satisfy the strictest server (Mistral).
  The ids are the same in every request, so a provider's prompt cache stays valid.
- A valid tool name stays as it is. Any other name loses its invalid characters and gets a hash of the original. So the
  same tool has the same name in every request: in the tools, in the history, and in the provider's cache.

Source: "Create chat completion" in the OpenAI API reference.
"""

import base64
import json
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

from agui_container.models.media import (
    NOT_BASE64,
    NOT_INLINE,
    DroppedMedia,
    decode_base64,
    decode_text,
    image_kind,
    is_text,
)
from agui_container.models.openai.opaque_fields import OpaqueFields
from agui_container.models.tool_schemas import ProviderTools, wire_name, wire_names
from agui_container.ports import MediaDroppedDelta, Prompt
from agui_container.protocol.conversation.transcript import has_failed
from agui_container.protocol.strict_json import parse_finite_json


class ToolNames:
    """Names of the tools of one prompt."""

    def __init__(self, names: Iterable[str]) -> None:
        self._originals = wire_names(names)  # the first wins: this server's own tools come before those of clients

    def original(self, name: str) -> str:
        """Return the tool's own name for a wire name. A name that no tool has stays as it is."""
        return self._originals.get(name, name)

    def is_tool(self, name: str) -> bool:
        """Return true if a tool has this wire name."""
        return name in self._originals

    def begins(self, name: str) -> bool:
        """Return true if the wire name of a tool begins with this text."""
        return any(each.startswith(name) for each in self._originals)

    def is_whole(self, name: str) -> bool:
        """Return true if no tool has a longer wire name that begins with this text."""
        return not any(each.startswith(name) and each != name for each in self._originals)


class CallExchange(Struct, frozen=True):
    """An assistant message, and its calls with their results. The result is None for an unanswered call."""

    message: AssistantMessage
    calls: Sequence[tuple[ToolCall, ToolMessage | None]]


def group_exchanges(messages: Sequence[Message]) -> list[Message | CallExchange]:
    """Return the conversation with each tool message attached to its call.

    The last result of a call counts. Results of unknown calls are left out. If calls of one
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
            results[positions[message.tool_call_id], message.tool_call_id] = message
    return results


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
    """Return the content of a user message; empty if it is blank.

    Without media it is one string, which every server understands.
    """
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


def tool_text(message: ToolMessage, dropped: DroppedMedia) -> str:
    """Return the content of a tool message. The API allows only text there."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(
        dropped.drop(message.id, index, part, ONLY_TEXT) if (text := _text(part)) is None else text
        for index, part in enumerate(message.content)
    )


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
        return NOT_INLINE
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


class RequestFormat:
    """Format of the requests to one server, as far as it is known what the server accepts.

    Attributes:
        has_usage: true if a report of the tokens is requested in the last chunk.
        reasoning_field: field in which reasoning is sent back; if empty, it is not sent.
        opaque_fields: fields of calls that only the model understands.
    """

    def __init__(self, reasoning_field: str | None = None, opaque_fields: OpaqueFields | None = None) -> None:
        self.has_usage = True
        self.reasoning_field = reasoning_field
        self.opaque_fields = opaque_fields or OpaqueFields("")


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
    """Return the request for ``prompt``.

    ``tools`` are the prompt's tools in the form that providers take, by wire name.
    """
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
    """Return the conversation in the form of the API.

    Results follow their calls, and an assistant message follows the results.
    """
    messages: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    reasoning_texts: list[str] = []
    numbers = count(1)
    for message in group_exchanges(prompt.messages):
        if isinstance(message, ReasoningMessage):
            reasoning_texts.append(message.content)
            continue
        if isinstance(message, CallExchange):
            name = wire_format.reasoning_field
            reasoning = {name: "\n".join(reasoning_texts)} if name and any(reasoning_texts) else {}
            exchange = _exchange_messages(message, numbers, reasoning, wire_format.opaque_fields, dropped)
            _append_exchange(messages, exchange)
        else:
            messages.extend(_text_message(message, _last_role(messages), dropped))
        reasoning_texts = []
    return messages


def _append_exchange(messages: list[Json], exchange: Sequence[Json]) -> None:
    """Append an exchange. Its text joins that of an assistant message before it, because some servers require it."""
    if exchange and messages and messages[-1]["role"] == "assistant":
        before, first = messages.pop(), exchange[0]
        joined = {
            name: "\n".join(str(each[name]) for each in (before, first) if each.get(name)) or None
            for name in {**before, **first}
            if name not in {"role", "tool_calls"}
        }
        exchange = [{**first, **joined}, *exchange[1:]]
    messages.extend(exchange)


def _last_role(messages: Sequence[Json]) -> object:
    """Return the role of the last message that is not a system message, or None."""
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
    exchange: CallExchange,
    numbers: Iterator[int],
    reasoning: Json,
    opaque_fields: OpaqueFields,
    dropped: DroppedMedia,
) -> Sequence[Json]:
    assistant: dict[str, object] = {"role": "assistant", "content": exchange.message.content or None, **reasoning}
    if not exchange.calls:
        return (assistant,) if exchange.message.content else ()
    ids = [f"call{next(numbers):05d}" for _ in exchange.calls]
    assistant["tool_calls"] = [
        opaque_fields.add_to(_call(id_, call), call.encrypted_value)
        for id_, (call, _) in zip(ids, exchange.calls, strict=True)
    ]
    results = [_result(id_, result, dropped) for id_, (_, result) in zip(ids, exchange.calls, strict=True)]
    return assistant, *results


def _call(id_: str, call: ToolCall) -> Json:
    function = {"name": wire_name(call.function.name), "arguments": _arguments(call.function.arguments)}
    return {"id": id_, "type": "function", "function": function}


def _arguments(text: str) -> str:
    """Return the arguments of a call as a JSON object, because local servers fail on anything else."""
    try:
        value = parse_finite_json(text or "{}")
    except ValueError:
        value = None
    return (text or "{}") if isinstance(value, dict) else json.dumps({"invalid": text}, ensure_ascii=False)


def _result(id_: str, result: ToolMessage | None, dropped: DroppedMedia) -> Json:
    content = UNANSWERED if result is None else _result_text(result, dropped)
    return {"role": "tool", "tool_call_id": id_, "content": content}


def _result_text(result: ToolMessage, dropped: DroppedMedia) -> str:
    """Return the text of a result. That of a failed one says so, because the API has no other place for it."""
    text, error = tool_text(result, dropped), (result.error or "").strip()
    if not has_failed(result):
        return text
    if error and error not in text:
        return "\n".join(filter(None, (text, f"Error: {error}")))
    return text if text.startswith("Error") else f"Error: {text or FAILED_RESULT}"
