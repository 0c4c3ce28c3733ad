"""Chunks of a chat completions stream as deltas: one ``ChatStreamParser`` per model call.

Rules: pure. Only the first choice is read. Usage and the stop come last and once, even if a server repeats them. A
stream is complete after a finish reason or ``[DONE]``. A later error is ignored; an earlier end is a failure.

Tool calls arrive in pieces. OpenAI sends an index with every piece, and id and name with the first. Other servers send
whole calls, leave out the index, give all calls index 0, or repeat the name with every piece. So these rules apply in
order: a known index or id selects that call; a piece with a name opens a new call if its id or name differs from the
previous call's, or if the previous call is complete; any other piece continues the previous call. A name may come in
pieces, too. While a tool of the prompt has a longer name that begins with what has come, the call is not announced: its
arguments, another call or the end of the answer end its name.

Opaque fields of the message come in pieces. What has come before the text or a call is the encrypted value of the
reasoning, and the rest belongs to the first call. An answer without text, reasoning and calls is a failure, because
LiteLLM turns a broken answer of its provider into one.

Usage has totals and parts of them, as in AG-UI. Some servers report reasoning or cached tokens in addition to the
totals instead of within them. If the numbers show this, they are added to the totals. Numbers that a server does not
report stay unknown.

Source: the "Chat Completions" streaming section of the OpenAI API reference.
"""

import json
from collections.abc import Mapping, Sequence

from ag_ui.core import TokenUsage
from msgspec import Struct, field
from pydantic_core import from_json

from agui_container.models.failures import ErrorBody, ModelFailure
from agui_container.models.openai.failures import (
    failure_of,
    is_error_chunk,
    parse_error,
    unreadable_answer,
)
from agui_container.models.openai.opaque_fields import OF_CALL, OF_MESSAGE, Fields, OpaqueFields, message_blocks
from agui_container.models.openai.request import ToolNames
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
from agui_container.protocol.errors import ErrorCode

Piece = Mapping[str, object]


class _PartialToolCall(Struct):
    index: int
    id: str | None = None
    name: str | None = None
    arguments: list[str] = field(default_factory=list)
    opaque: object = None
    is_announced: bool = False


class ToolCallParser:
    def __init__(self, names: ToolNames, opaque: OpaqueFields) -> None:
        self._names = names
        self._opaque = opaque
        self._calls: list[_PartialToolCall] = []
        self._by_index: dict[int, _PartialToolCall] = {}
        self._by_id: dict[str, _PartialToolCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, pieces: Sequence[Piece]) -> list[ToolCallDelta]:
        return [delta for piece in pieces for delta in self._piece(piece)]

    def finish(self, of_message: Fields) -> Sequence[ToolCallDelta]:
        """Return unannounced calls and opaque fields. The first call carries the fields of the message."""
        if any(call.name is None for call in self._calls):
            raise ModelFailure(ErrorCode.MODEL_ERROR, error_body=ErrorBody(text="a tool call has no name"))
        sealed = []
        for call in self._calls:
            own = {OF_CALL: call.opaque} if call.opaque is not None else {}
            if fields := own if call.index else {**own, **of_message}:
                sealed.append(ToolCallDelta(call.index, encrypted_value=self._opaque.seal(fields)))
        return *self._announce(self._calls), *sealed

    def _piece(self, piece: Piece) -> Sequence[ToolCallDelta]:
        function = piece.get("function")
        fields = function if isinstance(function, dict) else {}
        name, arguments = _text(fields.get("name")), _text(fields.get("arguments")) or ""
        call = self._call(piece, name, arguments)
        call.id = call.id or _text(piece.get("id"))
        call.name = f"{call.name}{name}" if self._continues_name(call, name) else call.name or name
        call.opaque = piece.get(OF_CALL) or call.opaque
        if call.id:
            self._by_id[call.id] = call
        if arguments:
            call.arguments.append(arguments)
        return *self._announce(self._calls[: call.index]), *self._delta(call, arguments)

    def _delta(self, call: _PartialToolCall, arguments: str) -> Sequence[ToolCallDelta]:
        if call.is_announced:
            return (ToolCallDelta(call.index, arguments),) if arguments else ()
        is_named = call.name is not None and (bool(call.arguments) or self._names.is_whole(call.name))
        return self._announce([call]) if is_named else ()

    def _announce(self, calls: Sequence[_PartialToolCall]) -> Sequence[ToolCallDelta]:
        deltas = []
        for call in calls:
            if call.name is not None and not call.is_announced:
                call.is_announced = True
                deltas.append(ToolCallDelta(call.index, "".join(call.arguments), self._names.original(call.name)))
        return deltas

    def _continues_name(self, call: _PartialToolCall, name: str | None) -> bool:
        if name is None or call.name is None or call.is_announced or call.arguments:
            return False
        return not self._names.is_tool(name) and self._names.begins(f"{call.name}{name}")

    def _opens_call(self, call: _PartialToolCall, id_: str | None, name: str | None, arguments: str) -> bool:
        is_same_id = not id_ or not call.id or id_ == call.id
        if is_same_id and self._continues_name(call, name):
            return False
        return _opens_call(call, id_, name, arguments)

    def _call(self, piece: Piece, name: str | None, arguments: str) -> _PartialToolCall:
        index, id_ = piece.get("index"), _text(piece.get("id"))
        if type(index) is not int:
            call = self._by_id.get(id_ or "") or (self._calls[-1] if self._calls else None)
            return self._new_call() if call is None or self._opens_call(call, id_, name, arguments) else call
        slot = self._by_index.get(index)
        if slot is None or self._opens_call(slot, id_, name, arguments):
            slot = self._by_index[index] = self._new_call()
        return slot

    def _new_call(self) -> _PartialToolCall:
        call = _PartialToolCall(len(self._calls))
        self._calls.append(call)
        return call


def _opens_call(call: _PartialToolCall, id_: str | None, name: str | None, arguments: str) -> bool:
    if name is None or call.name is None:
        return False
    if id_ and id_ == call.id:
        return False
    if name != call.name:
        return True
    if not call.arguments:
        return bool(id_ and call.id)
    begins = arguments.lstrip().startswith("{") or (not arguments and bool(id_ and call.id))
    return begins and _is_complete("".join(call.arguments))


def _is_complete(arguments: str) -> bool:
    try:
        from_json(arguments)
    except ValueError:
        return False
    return True


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


MAX_COUNT = 2**53 - 1
"""Largest number of tokens that JSON clients can represent exactly."""


def usage_of(reported: Mapping[str, object], provider: str, model: str) -> TokenUsage | None:
    prompt, completion = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
    if prompt is None and completion is None:
        return None
    reasoning = _detail(reported, "completion_tokens_details", "reasoning_tokens")
    cached, written = _cached(reported), _detail(reported, "prompt_tokens_details", "cache_write_tokens")
    input_tokens = _with_parts(prompt, (cached or 0) + (written or 0))
    output_tokens = _output(prompt, completion, reasoning or 0, _count(reported, "total_tokens"))
    is_complete = input_tokens is not None and output_tokens is not None
    return TokenUsage(
        provider=provider,
        model=model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=(input_tokens or 0) + (output_tokens or 0) if is_complete else None,
        reasoning_tokens=reasoning,
        cached_input_tokens=cached,
        cache_write_input_tokens=written,
    )


def _output(prompt: int | None, completion: int | None, reasoning: int, total: int | None) -> int | None:
    """Return the completion tokens including reasoning. xAI counts reasoning separately, as its total shows."""
    is_separate = None not in (prompt, completion) and total == (prompt or 0) + (completion or 0) + reasoning
    return (completion or 0) + reasoning if is_separate else _with_parts(completion, reasoning)


def _with_parts(total: int | None, parts: int) -> int | None:
    """Return a total including its parts. A total that is smaller than its parts does not contain them."""
    return total if total is None or total >= parts else total + parts


def _cached(reported: Mapping[str, object]) -> int | None:
    """Return the tokens read from the cache, by the field names of OpenAI, DeepSeek and Moonshot."""
    names = ("prompt_cache_hit_tokens", "cached_tokens")
    counts = (_detail(reported, "prompt_tokens_details", "cached_tokens"), *(_count(reported, name) for name in names))
    return next((count for count in counts if count is not None), None)


def _detail(reported: Mapping[str, object], group: str, name: str) -> int | None:
    details = reported.get(group)
    return _count(details, name) if isinstance(details, dict) else None


def _count(reported: Mapping[str, object], name: str) -> int | None:
    value = reported.get(name)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


DONE = "[DONE]"

_REASONS: Mapping[str, StopReason] = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.FILTERED,
}
_FAILED_REASONS = ("error", "abort", "insufficient_system_resource")


class ChatStreamParser:
    """Parser of one answer. It ``is_done`` once ``[DONE]`` has been received."""

    def __init__(self, names: ToolNames, provider: str, model: str, opaque: OpaqueFields | None = None) -> None:
        self.is_done = False
        self.has_reasoning_content = False
        self._labels = provider, model
        self._opaque = opaque or OpaqueFields(model)
        self._calls = ToolCallParser(names, self._opaque)
        self._of_message: list[Fields] = []
        self._usage: Mapping[str, object] = {}
        self._finish_reason: str | None = None
        self._is_empty = True
        self._has_answer = False

    @property
    def is_complete(self) -> bool:
        return self.is_done or self._finish_reason is not None

    def feed_data(self, data: str) -> Sequence[Delta]:
        """Raise ``ModelFailure`` for an error."""
        if self.is_done or data == DONE:
            self.is_done = True
            return ()
        try:
            return self.feed(_parse_chunk(data))
        except (AttributeError, TypeError, ValueError) as error:
            raise unreadable_answer(data) from error

    def feed(self, chunk: Mapping[str, object]) -> Sequence[Delta]:
        """Raise ``ModelFailure`` for an error."""
        if is_error_chunk(chunk):
            raise failure_of(None, parse_error(chunk))
        self._store_usage(chunk)
        deltas: list[Delta] = []
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if choice.get("index"):
                continue
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            self._add_message(choice.get("delta") or {}, deltas)
        self._is_empty = self._is_empty and not deltas and not self._calls
        return deltas

    def finish(self) -> Sequence[Delta]:
        """Return usage and stop. Raises ``ModelFailure`` for an incomplete answer or a failure as the reason."""
        if not self.is_complete:
            cut_off = ErrorBody(text="the connection ended before the answer did")
            raise ModelFailure(ErrorCode.MODEL_UNAVAILABLE, is_retryable=True, error_body=cut_off)
        if self._finish_reason in _FAILED_REASONS:
            raise failure_of(None, ErrorBody(codes=self._finish_reason))
        if self._is_empty and self._finish_reason not in _REASONS:
            raise ModelFailure(
                ErrorCode.MODEL_ERROR, is_retryable=True, error_body=ErrorBody(text="the answer is empty")
            )
        calls = self._calls.finish(message_blocks(*self._of_message))
        return *calls, *self.usage(), StopDelta(self._stop_reason())

    def usage(self) -> Sequence[Delta]:
        """Return the usage reported so far as a delta. It is also valid after a failure."""
        usage = usage_of(self._usage, *self._labels)
        return () if usage is None else (UsageDelta(usage),)

    def _stop_reason(self) -> StopReason:
        reason = _REASONS.get(self._finish_reason or "")
        # Some servers send "stop" with tool calls, or "tool_calls" without any, so the calls decide.
        return reason or (StopReason.TOOLS if self._calls else StopReason.END)

    def _store_usage(self, chunk: Mapping[str, object]) -> None:
        """Store the usage in a chunk. The last one wins, because some servers report growing usage with every chunk."""
        # Groq has its own field.
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
        if isinstance(usage, dict):
            self._usage = usage

    def _add_message(self, message: Mapping[str, object], deltas: list[Delta]) -> None:
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        if reasoning and isinstance(reasoning, str):
            self.has_reasoning_content = self.has_reasoning_content or "reasoning_content" in message
            deltas.append(ReasoningDelta(reasoning))
        if any(message.get(name) for name in OF_MESSAGE):
            self._of_message.append({name: message.get(name) for name in OF_MESSAGE})
        text, calls = message.get("content") or message.get("refusal"), message.get("tool_calls")
        if self._of_message and (text or calls) and not self._has_answer:
            deltas.append(EncryptedDelta(self._opaque.seal(message_blocks(*self._of_message))))
            self._of_message = []
        self._has_answer = self._has_answer or bool(text or calls)
        if text and isinstance(text, str):
            deltas.append(TextDelta(text))
        elif isinstance(text, list):
            deltas.extend(_part_deltas(text))
        if calls and isinstance(calls, list):
            deltas.extend(self._calls.feed(calls))


def _parse_chunk(data: str) -> Mapping[str, object]:
    """Servers may split a symbol over two chunks as escaped halves. Only the tolerant parser accepts these."""
    chunk: Mapping[str, object] = json.loads(data) if "\\ud" in data.lower() else from_json(data)
    return chunk


def _part_deltas(parts: Sequence[Mapping[str, object]]) -> Sequence[Delta]:
    """Return the deltas of content that is a list of parts, which Mistral's reasoning models send."""
    deltas: list[Delta] = []
    for part in parts:
        text, thinking = part.get("text"), part.get("thinking")
        if isinstance(text, str) and text:
            deltas.append(TextDelta(text))
        if isinstance(thinking, list):
            deltas.extend(ReasoningDelta(item["text"]) for item in thinking if item.get("text"))
    return deltas
