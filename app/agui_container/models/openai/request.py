"""Calls and their results, made to match: every call is answered once, right after it, and nothing else is answered.

The history comes from outside, so anything can be missing, double or out of place, and servers refuse all of that.

Content as the API takes it: text, images, sound and PDF files.

Rule: only bytes that came with the message go out. A URL would make the provider fetch what a stranger names, and a
handle belongs to whoever issued it: both are left out. So is what the API has no form for, and what servers would
refuse, because it stays in the history: data that is no base64, pictures of other kinds than all can read. The model
reads a note in place of what was left out, so that it can say so, and the log has a warning.

A prompt as the body of a chat completions request.

Calls get new ids, counted through the conversation: nine letters and digits, which the strictest server (Mistral's)
takes, and the same in every request, which keeps a provider's cache of the prompt.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

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
from pydantic import ConfigDict

from agui_container.models.images import decode_base64, image_kind
from agui_container.models.openai.tool_names import wire_name
from agui_container.ports import Prompt


class CallExchange(Struct, frozen=True):
    """What an assistant said, and its calls with their results; None where a call was never answered."""

    message: AssistantMessage
    calls: Sequence[tuple[ToolCall, ToolMessage | None]]


def pair_calls(messages: Sequence[Message]) -> list[Message | CallExchange]:
    """The conversation with tool messages moved to their calls.

    Of several results of one call the first counts; results of unknown calls are left out, and so are calls that
    repeat an id within one message.
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
    """The result of each call, by the position of the message that made it: later messages may use its id again."""
    makers: dict[str, int] = {}
    results: dict[tuple[int, str], ToolMessage] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            makers.update((call.id, position) for call in message.tool_calls or ())
        elif isinstance(message, ToolMessage) and message.tool_call_id in makers:
            results.setdefault((makers[message.tool_call_id], message.tool_call_id), message)
    return results


logger = logging.getLogger(__name__)

Json = Mapping[str, object]

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def user_content(content: str | Sequence[ContentPart]) -> str | list[Json]:
    """A user's content. Without media it is one string, which every server understands."""
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def tool_text(content: str | Sequence[ContentPart]) -> str:
    """A tool's content, which can be nothing but text."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text if isinstance(part, TextPart) else _note(part) for part in content)


def _part(part: ContentPart) -> Json:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return _media(part) or {"type": "text", "text": _note(part)}


def _media(part: ContentPart) -> Json | None:
    if isinstance(part, TextPart) or not isinstance(part.source, DataSource):
        return None
    value, kind = part.source.value, part.source.mime_type.partition(";")[0].strip().lower()
    data = decode_base64(value)
    if not data:
        return None
    if isinstance(part, ImagePart):
        picture = image_kind(data)
        return {"type": "image_url", "image_url": {"url": f"data:image/{picture};base64,{value}"}} if picture else None
    if isinstance(part, AudioPart) and kind in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": value, "format": _SOUNDS[kind]}}
    if isinstance(part, DocumentPart) and kind == "application/pdf":
        url = f"data:application/pdf;base64,{value}"
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    return None


def _note(part: ContentPart) -> str:
    source = "" if isinstance(part, TextPart) else part.source.type
    logger.warning("part=<%s> source=<%s> | left out what the model cannot be given", part.type, source)
    return f"[{part.type} left out: this model cannot be given it]"


UNANSWERED = "Error: there is no result; the call was interrupted."
GO_ON = "Continue."
"""What the user says where an assistant spoke last: servers refuse to go on from that."""
SILENCE = "(No answer was given.)"
"""What the assistant says between a result and a user, where servers want it to have answered."""


@dataclass(frozen=True, slots=True)
class OpenAIOptions:
    """What a server is told besides the prompt.

    Attributes:
        body: more fields of the request (``temperature``, ``max_tokens``, ``reasoning_effort``, …); None takes one out.
        headers: more headers; they may hold keys, so they are left out of ``repr``.
        reasoning_field: the field of assistant messages in which the server wants its reasoning back, such as
            ``reasoning_content``; none: reasoning is not sent back.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    body: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reasoning_field: str | None = None


def request_body(model: str, prompt: Prompt, options: OpenAIOptions, *, usage: bool = True) -> bytes:
    """The request as JSON. ``usage`` asks for the cost of the call in the last chunk."""
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
    kept = {name: value for name, value in body.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def tool_of(tool: ToolSpec) -> Json:
    """A function tool; without a schema it takes no arguments."""
    schema = tool.parameters if isinstance(tool.parameters, dict) and tool.parameters else None
    function = {
        "name": wire_name(tool.name),
        "description": tool.description,
        "parameters": schema or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


def messages_of(prompt: Prompt, reasoning_field: str | None = None) -> list[Json]:
    """The conversation as the API has it: calls and results in pairs, answers behind results, no answer at the end."""
    messages: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    thoughts: list[str] = []
    numbers = count(1)
    for message in pair_calls(prompt.messages):
        if isinstance(message, ReasoningMessage):
            thoughts.append(message.content)
            continue
        if isinstance(message, CallExchange):
            reasoning = {reasoning_field: "\n".join(thoughts)} if reasoning_field and any(thoughts) else {}
            messages.extend(_exchange(message, numbers, reasoning))
        else:
            messages.extend(_spoken_message(message, _speaker(messages)))
        thoughts = []
    if _speaker(messages) == "assistant":
        messages.append({"role": "user", "content": GO_ON})
    return messages


def _speaker(messages: Sequence[Json]) -> object:
    """Whose the last message is; instructions are nobody's."""
    return next((message["role"] for message in reversed(messages) if message["role"] != "system"), None)


def _spoken_message(message: Message, speaker: object) -> Sequence[Json]:
    if isinstance(message, UserMessage):
        answered = ({"role": "assistant", "content": SILENCE},) if speaker == "tool" else ()
        return *answered, {"role": "user", "content": user_content(message.content)}
    if isinstance(message, (SystemMessage, DeveloperMessage)):
        # "developer" is known to OpenAI only, which takes "system" for the same.
        return ({"role": "system", "content": message.content},)
    return ()


def _exchange(exchange: CallExchange, numbers: Iterator[int], reasoning: Json) -> Sequence[Json]:
    said: dict[str, object] = {"role": "assistant", "content": exchange.message.content or None, **reasoning}
    if not exchange.calls:
        return (said,) if exchange.message.content else ()
    ids = [f"call{next(numbers):05d}" for _ in exchange.calls]
    said["tool_calls"] = [_call(id_, call) for id_, (call, _) in zip(ids, exchange.calls, strict=True)]
    results = [_result(id_, result) for id_, (_, result) in zip(ids, exchange.calls, strict=True)]
    return said, *results


def _call(id_: str, call: ToolCall) -> Json:
    function = {"name": wire_name(call.function.name), "arguments": _arguments(call.function.arguments)}
    return {"id": id_, "type": "function", "function": function}


def _arguments(text: str) -> str:
    """The arguments of a call; templates of local servers break on what is not a JSON object."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return (text or "{}") if isinstance(value, dict) else json.dumps({"invalid": text}, ensure_ascii=False)


def _result(id_: str, result: ToolMessage | None) -> Json:
    texts = (UNANSWERED,) if result is None else (tool_text(result.content), _error(result))
    return {"role": "tool", "tool_call_id": id_, "content": "\n".join(filter(None, texts))}


def _error(result: ToolMessage) -> str:
    return f"Error: {result.error}" if result.error else ""
