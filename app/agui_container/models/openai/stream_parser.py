"""Chunks of a chat completions stream as deltas: one ``ChatStreamParser`` per model call.

Rules: pure. Only the first choice is read. Usage and the stop come last and once, even if a server repeats them. A
stream is complete after a finish reason or ``[DONE]``. A later error is ignored; an earlier end is a failure.

Tool calls arrive in pieces. OpenAI sends an index with every piece, and id and name with the first. Other servers send
whole calls, leave out the index, give all calls index 0, repeat the name with every piece, or send the arguments as an
object. So these rules apply in order: a known index or id selects that call; a piece with a name opens a new call if
its id or name differs from the previous call's, or if the previous call is complete; any other piece continues the
previous call. A name may come in pieces, too. While a tool of the prompt has a longer name that begins with what has
come, the call is not announced: its arguments, another call or the end of the answer end its name.

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

from agui_container.models.openai.failures import (
    ErrorBody,
    ModelFailure,
    failure_of,
    is_error_chunk,
    parse_error,
    unreadable_answer,
)
from agui_container.models.openai.opaque_fields import OpaqueFields, opaque_fields
from agui_container.models.openai.request import ToolNames
from agui_container.ports import Delta, ReasoningDelta, StopDelta, StopReason, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import ErrorCode

Piece = Mapping[str, object]


class _PartialToolCall(Struct):
    index: int
    id: str | None = None
    name: str | None = None
    arguments: list[str] = field(default_factory=list)
    opaque: dict[str, object] = field(default_factory=dict)
    is_announced: bool = False


class ToolCallParser:
    """Parser of the tool calls of one answer."""

    def __init__(self, names: ToolNames, opaque: OpaqueFields) -> None:
        self._names = names
        self._opaque = opaque
        self._calls: list[_PartialToolCall] = []
        self._by_index: dict[int, _PartialToolCall] = {}
        self._by_id: dict[str, _PartialToolCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, pieces: Sequence[Piece]) -> list[ToolCallDelta]:
        """Return the deltas of the pieces of one chunk."""
        return [delta for piece in pieces for delta in self._piece(piece)]

    def finish(self) -> Sequence[ToolCallDelta]:
        """End the answer. Return the deltas of calls that have not been announced, and of opaque fields.

        Raises:
            ModelFailure: a call has no name.
        """
        if any(call.name is None for call in self._calls):
            raise ModelFailure(ErrorCode.MODEL_ERROR, "The model sent a tool call without a name.")
        sealed = [
            ToolCallDelta(call.index, encrypted_value=self._opaque.seal(call.opaque))
            for call in self._calls
            if call.opaque
        ]
        return *self._announce(self._calls), *sealed

    def _piece(self, piece: Piece) -> Sequence[ToolCallDelta]:
        function = piece.get("function")
        fields = function if isinstance(function, dict) else {}
        name, arguments = _text(fields.get("name")), _arguments(fields.get("arguments"))
        call = self._call(piece, name, arguments)
        call.id = call.id or _text(piece.get("id"))
        call.name = f"{call.name}{name}" if self._continues_name(call, name) else call.name or name
        call.opaque |= opaque_fields(piece)
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
        """Return the first delta of each call that has a name and has not been announced."""
        deltas = []
        for call in calls:
            if call.name is not None and not call.is_announced:
                call.is_announced = True
                deltas.append(ToolCallDelta(call.index, "".join(call.arguments), self._names.original(call.name)))
        return deltas

    def _continues_name(self, call: _PartialToolCall, name: str | None) -> bool:
        """Return true if ``name`` is the next piece of the name of ``call``."""
        if name is None or call.name is None or call.is_announced or call.arguments:
            return False
        return not self._names.is_tool(name) and self._names.begins(f"{call.name}{name}")

    def _opens_call(self, call: _PartialToolCall, id_: str | None, name: str | None, arguments: str) -> bool:
        """Return true if a piece does not continue ``call`` but opens another call."""
        is_same_id = not id_ or not call.id or id_ == call.id
        if is_same_id and self._continues_name(call, name):
            return False
        return _opens_call(call, id_, name, arguments)

    def _call(self, piece: Piece, name: str | None, arguments: str) -> _PartialToolCall:
        """Return the call that a piece belongs to, which may be a new one."""
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
    """Return true if a piece does not continue ``call`` but opens another call."""
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


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


MAX_COUNT = 2**53 - 1
"""Largest number of tokens that JSON clients can represent exactly."""


def usage_of(reported: Mapping[str, object], provider: str, model: str) -> TokenUsage | None:
    """Convert the usage field of a chunk. Return None if it has no counts."""
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


DONE = b"[DONE]"

_REASONS: Mapping[str, StopReason] = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.FILTERED,
}
_FAILED_REASONS = ("error", "abort", "insufficient_system_resource")


class ChatStreamParser:
    """Parser of one answer.

    Args:
        names: names of the prompt's tools.
        provider: provider in the reported usage.
        model: model in the reported usage.
        opaque: sealer of the fields of calls that only the model understands.

    Attributes:
        is_done: true if ``[DONE]`` has been received.
        has_reasoning_content: true if reasoning has come in ``reasoning_content``.
    """

    def __init__(self, names: ToolNames, provider: str, model: str, opaque: OpaqueFields | None = None) -> None:
        self.is_done = False
        self.has_reasoning_content = False
        self._labels = provider, model
        self._calls = ToolCallParser(names, opaque or OpaqueFields(model))
        self._usage: Mapping[str, object] = {}
        self._finish_reason: str | None = None
        self._is_empty = True

    @property
    def is_complete(self) -> bool:
        """True if a finish reason or ``[DONE]`` has been received."""
        return self.is_done or self._finish_reason is not None

    def feed_data(self, data: bytes) -> Sequence[Delta]:
        """Return the deltas of one server-sent event.

        Raises:
            ModelFailure: the event is an error or cannot be parsed.
        """
        if self.is_done or data == DONE:
            self.is_done = True
            return ()
        try:
            return [delta for chunk in _parse_chunks(data) for delta in self.feed(chunk)]
        except (AttributeError, TypeError, ValueError) as error:
            raise unreadable_answer(data) from error

    def feed(self, chunk: Mapping[str, object]) -> Sequence[Delta]:
        """Return the deltas of one chunk.

        Raises:
            ModelFailure: the chunk is an error.
        """
        if is_error_chunk(chunk):
            raise failure_of(None, parse_error(chunk))
        self._store_usage(chunk)
        deltas: list[Delta] = []
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if choice.get("index"):
                continue
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            # Servers that do not stream send the whole message.
            self._add_message(choice.get("delta") or choice.get("message") or {}, deltas)
        self._is_empty = self._is_empty and not deltas and not self._calls
        return deltas

    def finish(self) -> Sequence[Delta]:
        """Return the last deltas: usage and the stop.

        Raises:
            ModelFailure: the answer is incomplete, or its finish reason is a failure.
        """
        if not self.is_complete:
            raise ModelFailure(
                ErrorCode.MODEL_UNAVAILABLE,
                "The connection to the model ended before its answer did.",
                is_retryable=True,
            )
        if self._finish_reason in _FAILED_REASONS:
            raise failure_of(None, ErrorBody(codes=self._finish_reason))
        if self._finish_reason is None and self._is_empty:
            raise ModelFailure(ErrorCode.MODEL_ERROR, "The model sent no answer.", is_retryable=True)
        return *self._calls.finish(), *self.usage(), StopDelta(self._stop_reason())

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
        text = message.get("content") or message.get("refusal")
        if text and isinstance(text, str):
            deltas.append(TextDelta(text))
        elif isinstance(text, list):
            deltas.extend(_part_deltas(text))
        calls, function = message.get("tool_calls"), message.get("function_call")
        if calls and isinstance(calls, list):
            deltas.extend(self._calls.feed(calls))
        elif isinstance(function, dict):  # the deprecated form; llama-cpp-python sends both
            deltas.extend(self._calls.feed([{"index": 0, "function": function}]))


def _parse_chunks(data: bytes) -> Sequence[Mapping[str, object]]:
    """Parse the data of an event: a chunk, or a list of chunks.

    Servers may split a symbol over two chunks as two escaped halves. Only the tolerant parser accepts these.
    """
    value = json.loads(data) if b"\\ud" in data.lower() else from_json(data)
    return value if isinstance(value, list) else [value]


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
