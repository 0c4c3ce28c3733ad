"""Chunks of a chat completions stream in, deltas out: one ``Reading`` per model call.

Rules: pure; usage and the stop come last and once, whatever a server repeats; only the first choice is read. A stream
is complete once a finish reason or ``[DONE]`` has come: what breaks later does no harm, what ends earlier is a failure.
"""

from collections.abc import Mapping, Sequence

from pydantic_core import from_json

from app.core.errors import Code
from app.models.openai.calls import Calls
from app.models.openai.failures import Complaint, ModelFailure, complaint_in, failure_of, is_complaint
from app.models.openai.names import Names
from app.models.openai.usage import usage_of
from app.ports import Delta, ReasoningDelta, StopDelta, StopReason, TextDelta, UsageDelta

DONE = b"[DONE]"

_REASONS: Mapping[str, StopReason] = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.FILTERED,
}
_FAILED = ("error", "abort", "insufficient_system_resource")


class Reading:
    """What one stream has said so far.

    Args:
        names: of the prompt's tools.
        provider: who is named in the usage, with ``model``.
    """

    def __init__(self, names: Names, provider: str, model: str) -> None:
        self.done = False
        self._labels = provider, model
        self._calls = Calls(names)
        self._usage: Mapping[str, object] = {}
        self._reason: str | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer is all there."""
        return self.done or self._reason is not None

    def feed_data(self, data: bytes) -> Sequence[Delta]:
        """The deltas of one server-sent event.

        Raises:
            ModelFailure: it is an error, or cannot be read.
        """
        if self.done or data == DONE:
            self.done = True
            return ()
        try:
            return self.feed(from_json(data))
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelFailure(Code.MODEL_ERROR, "The model sent what cannot be read.", retry=True) from error

    def feed(self, chunk: Mapping[str, object]) -> Sequence[Delta]:
        """The deltas of one chunk."""
        if is_complaint(chunk):
            raise failure_of(None, complaint_in(chunk))
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
        if not self.complete:
            raise ModelFailure(
                Code.MODEL_UNAVAILABLE, "The connection to the model ended before its answer did.", retry=True
            )
        if self._reason in _FAILED:
            raise failure_of(None, Complaint(words=self._reason))
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
