"""Symbols that an agent splits over two items of its stream, each with one half of a surrogate pair."""

from collections.abc import Sequence

from ag_ui.core import BaseEvent, ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent

from agui_container.protocol.strict_json import REPLACEMENT, split_half, whole_text

DELTAS = (TextMessageContentEvent, ReasoningMessageContentEvent, ToolCallArgsEvent)


class PairJoiner:
    """Joins the halves of a symbol in consecutive texts of one message or call. Other halves become U+FFFD.

    It reads expanded events, because a chunk may leave out the id of its message. The first half of a pair is held
    until the next event, which may begin with the second one.
    """

    def __init__(self) -> None:
        self.held: BaseEvent | None = None
        """Like the last event, but with a half as its text, which the next one may continue. None without a half."""

    def feed(self, event: BaseEvent) -> Sequence[BaseEvent]:
        if self.held is None and not isinstance(event, DELTAS):
            return (event,)
        text = _text_of(event)
        if self.held is None and (text is None or text.isascii()):
            return (event,)
        if text is None:
            return *self.flush(), event
        before: Sequence[BaseEvent] = ()
        if self.held is not None and _is_continued(self.held, event):
            text, self.held = f"{_text_of(self.held)}{text}", None
        else:
            before = self.flush()
        whole, half = split_half(text)
        if half:
            self.held = _with_text(event, half)
        return (*before, _with_text(event, whole_text(whole))) if whole or not half else before

    def flush(self) -> Sequence[BaseEvent]:
        """Return U+FFFD as the text in place of a half that has no other."""
        held, self.held = self.held, None
        return () if held is None else (_with_text(held, REPLACEMENT),)


def _text_of(event: BaseEvent) -> str | None:
    text: object = event.__dict__.get("delta") if isinstance(event, DELTAS) else None
    return text if isinstance(text, str) else None


def _with_text(event: BaseEvent, text: str) -> BaseEvent:
    return event if _text_of(event) == text else event.model_copy(update={"delta": text})


def _is_continued(held: BaseEvent, event: BaseEvent) -> bool:
    return type(held) is type(event) and _target_of(held) == _target_of(event)


def _target_of(event: BaseEvent) -> tuple[object, ...]:
    names = ("message_id", "tool_call_id", "subagent_run_id")
    return tuple(getattr(event, name, None) for name in names)
