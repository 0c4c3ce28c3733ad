"""Symbols that an agent splits over two items of its stream, each with one half of a surrogate pair."""

from collections.abc import Sequence

from ag_ui.core import ReasoningMessageContentEvent, TextMessageContentEvent, ToolCallArgsEvent

from agui_container.ports import Item
from agui_container.protocol.expander import MessageText
from agui_container.protocol.strict_json import REPLACEMENT, whole_text
from agui_container.runtime.surrogates import split_half

WITH_DELTA = (MessageText, TextMessageContentEvent, ReasoningMessageContentEvent, ToolCallArgsEvent)
WITH_TEXT = (str, *WITH_DELTA)


class PairJoiner:
    """Joins the halves of a symbol in consecutive texts of one message or call. Other halves become U+FFFD.

    The first half of a pair is held until the next item, which may begin with the second one.
    """

    def __init__(self) -> None:
        self.held: Item | None = None
        """Like the last item, but with a half as its text, which the next item may continue. None without a half."""

    def feed(self, item: Item) -> Sequence[Item]:
        """Return the items to accept in place of an item."""
        if self.held is None and not isinstance(item, WITH_TEXT):
            return (item,)
        text = _text_of(item)
        if self.held is None and (text is None or text.isascii()):
            return (item,)
        if text is None:
            return *self.flush(), item
        before: Sequence[Item] = ()
        if self.held is not None and _is_continued(self.held, item):
            text, self.held = f"{_text_of(self.held)}{text}", None
        else:
            before = self.flush()
        whole, half = split_half(text)
        if half:
            self.held = _with_text(item, half)
        return (*before, _with_text(item, whole_text(whole))) if whole or not half else before

    def flush(self) -> Sequence[Item]:
        """Return U+FFFD as the text in place of a half that has no other."""
        held, self.held = self.held, None
        return () if held is None else (_with_text(held, REPLACEMENT),)


def _text_of(item: Item) -> str | None:
    """Return the text of an item that adds to a message or a call, or None. It may be invalid."""
    if isinstance(item, str):
        return item
    text = item.delta if isinstance(item, WITH_DELTA) else None
    return text if isinstance(text, str) else None


def _with_text(item: Item, text: str) -> Item:
    if isinstance(item, str):
        return text
    if isinstance(item, MessageText):
        return MessageText(item.message_id, text)
    return item if _text_of(item) == text else item.model_copy(update={"delta": text})


def _is_continued(held: Item, item: Item) -> bool:
    """Return True if an item adds to the message or call that the held one adds to."""
    return type(held) is type(item) and _target_of(held) == _target_of(item)


def _target_of(item: Item) -> tuple[object, ...]:
    names = ("message_id", "tool_call_id", "subagent_run_id")
    return tuple(getattr(item, name, None) for name in names)
