"""Tool calls in fragments, put in order: which piece belongs to which call.

OpenAI sends an index with every piece, and id and name with the first. Others send whole calls, leave the index out,
give all calls index 0, repeat the name with every piece, or send the arguments as an object. The rules, in order: a
known index or id is that call; a piece with a name opens a new call if the call before it is told apart by its id or
name, or is already complete; anything else goes on with the call before it.

What a call cost, in AG-UI's accounting: totals, and parts of them.

OpenAI counts the same way. Some servers report reasoning or cached tokens beside the totals instead of within them;
where their numbers show it, those are added in. What a server does not report stays unknown.

Chunks of a chat completions stream in, deltas out: one ``ChatStreamParser`` per model call.

Rules: pure; usage and the stop come last and once, whatever a server repeats; only the first choice is read. A stream
is complete once a finish reason or ``[DONE]`` has come: what breaks later does no harm, what ends earlier is a failure.
"""

import json
from collections.abc import Mapping, Sequence

from ag_ui.core import TokenUsage
from msgspec import Struct, field
from pydantic_core import from_json

from agui_container.models.openai.failures import ErrorBody, ModelFailure, failure_of, is_error_chunk, parse_error
from agui_container.models.openai.tool_names import ToolNames
from agui_container.ports import Delta, ReasoningDelta, StopDelta, StopReason, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import ErrorCode

Piece = Mapping[str, object]


class _PartialToolCall(Struct):
    index: int
    id: str | None = None
    name: str | None = None
    arguments: list[str] = field(default_factory=list)
    announced: bool = False


class ToolCallParser:
    """The calls of one model call."""

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._calls: list[_PartialToolCall] = []
        self._by_index: dict[int, _PartialToolCall] = {}
        self._by_id: dict[str, _PartialToolCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, pieces: Sequence[Piece]) -> list[ToolCallDelta]:
        """What the pieces of one chunk add."""
        return [delta for piece in pieces for delta in self._piece(piece)]

    def finish(self) -> None:
        """Check that every call has a name.

        Raises:
            ModelFailure: one has none, so nobody can run it.
        """
        if not all(call.announced for call in self._calls):
            raise ModelFailure(ErrorCode.MODEL_ERROR, "The model sent a tool call without a name.")

    def _piece(self, piece: Piece) -> Sequence[ToolCallDelta]:
        function = piece.get("function")
        said = function if isinstance(function, dict) else {}
        name, arguments = _text(said.get("name")), _arguments(said.get("arguments"))
        call = self._call(piece, name, arguments)
        call.id, call.name = call.id or _text(piece.get("id")), call.name or name
        if call.id:
            self._by_id[call.id] = call
        if arguments:
            call.arguments.append(arguments)
        return self._delta(call, arguments)

    def _delta(self, call: _PartialToolCall, arguments: str) -> Sequence[ToolCallDelta]:
        if call.announced:
            return (ToolCallDelta(call.index, arguments),) if arguments else ()
        if call.name is None:
            return ()  # held back until the name is known
        call.announced = True
        return (ToolCallDelta(call.index, "".join(call.arguments), self._names.original(call.name)),)

    def _call(self, piece: Piece, name: str | None, arguments: str) -> _PartialToolCall:
        """The call that a piece belongs to, which may be a new one."""
        index, id_ = piece.get("index"), _text(piece.get("id"))
        if type(index) is not int:
            known = self._by_id.get(id_ or "") or (self._calls[-1] if self._calls else None)
            return self._opened() if known is None or _opens(known, id_, name, arguments) else known
        slot = self._by_index.get(index)
        if slot is None or _opens(slot, id_, name, arguments):
            slot = self._by_index[index] = self._opened()
        return slot

    def _opened(self) -> _PartialToolCall:
        call = _PartialToolCall(len(self._calls))
        self._calls.append(call)
        return call


def _opens(call: _PartialToolCall, id_: str | None, name: str | None, arguments: str) -> bool:
    """Whether a piece that could go on with ``call`` is the first of another one."""
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


def usage_of(reported: Mapping[str, object], provider: str, model: str) -> TokenUsage | None:
    """The usage field of a chunk; None if it says nothing."""
    prompt, completion = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
    if prompt is None and completion is None:
        return None
    reasoning = _detail(reported, "completion_tokens_details", "reasoning_tokens")
    cached, written = _cached(reported), _detail(reported, "prompt_tokens_details", "cache_write_tokens")
    input_tokens = _with_parts(prompt, (cached or 0) + (written or 0))
    output_tokens = _output(prompt, completion, reasoning or 0, _count(reported, "total_tokens"))
    known = input_tokens is not None and output_tokens is not None
    return TokenUsage(
        provider=provider,
        model=model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=(input_tokens or 0) + (output_tokens or 0) if known else None,
        reasoning_tokens=reasoning,
        cached_input_tokens=cached,
        cache_write_input_tokens=written,
    )


def _output(prompt: int | None, completion: int | None, reasoning: int, total: int | None) -> int | None:
    """Completion tokens with the reasoning in them: xAI's total shows that it counts reasoning on its own."""
    beside = None not in (prompt, completion) and total == (prompt or 0) + (completion or 0) + reasoning
    return (completion or 0) + reasoning if beside else _with_parts(completion, reasoning)


def _with_parts(total: int | None, parts: int) -> int | None:
    """A total that is smaller than its parts does not contain them."""
    return total if total is None or total >= parts else total + parts


def _cached(reported: Mapping[str, object]) -> int | None:
    """Tokens read from the cache, as OpenAI, DeepSeek and Moonshot name them."""
    names = ("prompt_cache_hit_tokens", "cached_tokens")
    found = (_detail(reported, "prompt_tokens_details", "cached_tokens"), *(_count(reported, name) for name in names))
    return next((count for count in found if count is not None), None)


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
_FAILED = ("error", "abort", "insufficient_system_resource")


class ChatStreamParser:
    """What one stream has said so far.

    Args:
        names: of the prompt's tools.
        provider: who is named in the usage, with ``model``.
    """

    def __init__(self, names: ToolNames, provider: str, model: str) -> None:
        self.is_done = False
        self._labels = provider, model
        self._calls = ToolCallParser(names)
        self._usage: Mapping[str, object] = {}
        self._reason: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer is all there."""
        return self.is_done or self._reason is not None

    def feed_data(self, data: bytes) -> Sequence[Delta]:
        """The deltas of one server-sent event.

        Raises:
            ModelFailure: it is an error, or cannot be read.
        """
        if self.is_done or data == DONE:
            self.is_done = True
            return ()
        try:
            return self.feed(from_json(data))
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelFailure(ErrorCode.MODEL_ERROR, "The model sent what cannot be read.", retry=True) from error

    def feed(self, chunk: Mapping[str, object]) -> Sequence[Delta]:
        """The deltas of one chunk."""
        if is_error_chunk(chunk):
            raise failure_of(None, parse_error(chunk))
        self._keep_usage(chunk)
        deltas: list[Delta] = []
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if choice.get("index"):
                continue
            self._reason = choice.get("finish_reason") or self._reason
            # A server that does not stream sends the whole message.
            self._said(choice.get("delta") or choice.get("message") or {}, deltas)
        return deltas

    def finish(self) -> Sequence[Delta]:
        """What comes last: usage and the stop.

        Raises:
            ModelFailure: the answer is not all there, or the server says that it failed.
        """
        if not self.is_complete:
            raise ModelFailure(
                ErrorCode.MODEL_UNAVAILABLE, "The connection to the model ended before its answer did.", retry=True
            )
        if self._reason in _FAILED:
            raise failure_of(None, ErrorBody(words=self._reason))
        self._calls.finish()
        return *self.usage(), StopDelta(self._stop_reason())

    def usage(self) -> Sequence[Delta]:
        """What has been reported of the cost; for failures, too."""
        usage = usage_of(self._usage, *self._labels)
        return () if usage is None else (UsageDelta(usage),)

    def _stop_reason(self) -> StopReason:
        reason = _REASONS.get(self._reason or "")
        # Whether there are calls is a fact; servers say "stop" for them, or "tool_calls" for none.
        return reason or (StopReason.TOOLS if self._calls else StopReason.END)

    def _keep_usage(self, chunk: Mapping[str, object]) -> None:
        """The last report counts: some servers send a growing one with every chunk, Groq puts it elsewhere."""
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
        if isinstance(usage, dict):
            self._usage = usage

    def _said(self, message: Mapping[str, object], deltas: list[Delta]) -> None:
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        if reasoning and isinstance(reasoning, str):
            deltas.append(ReasoningDelta(reasoning))
        text = message.get("content") or message.get("refusal")
        if text and isinstance(text, str):
            deltas.append(TextDelta(text))
        elif isinstance(text, list):
            deltas.extend(_parts(text))
        calls, function = message.get("tool_calls"), message.get("function_call")
        if calls and isinstance(calls, list):
            deltas.extend(self._calls.feed(calls))
        elif isinstance(function, dict):  # the older name; llama-cpp-python says everything under both
            deltas.extend(self._calls.feed([{"index": 0, "function": function}]))


def _parts(parts: Sequence[Mapping[str, object]]) -> Sequence[Delta]:
    """Content as a list of parts: Mistral's reasoning models send their thoughts so."""
    deltas: list[Delta] = []
    for part in parts:
        text, thoughts = part.get("text"), part.get("thinking")
        if isinstance(text, str) and text:
            deltas.append(TextDelta(text))
        if isinstance(thoughts, list):
            deltas.extend(ReasoningDelta(thought["text"]) for thought in thoughts if thought.get("text"))
    return deltas
