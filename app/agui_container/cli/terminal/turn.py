"""Items that a turn of the agent shows: texts, reasoning, tool calls, and notes about everything else.

Rule: pure state, changed by events and by a clock that is given. A finished item does not change any more, so that a
terminal can print it for good. No text of an item has control characters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from ag_ui.core import (
    ActivitySnapshotEvent,
    BaseEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agui_client.rendering import text_of
from agui_container.cli.control_characters import without_controls
from agui_core.transcript import DENIED, DURATION, FAILED


class ItemKind(Enum):
    TEXT = auto()
    REASONING = auto()
    CALL = auto()
    NOTE = auto()


@dataclass
class Item:
    """Something that a turn shows.

    Attributes:
        depth: number of subagents around it.
        name: of the tool of a call.
        pieces: text, reasoning, or arguments of a call as JSON text, as far as they have arrived.
        result: text of a call's result, or None while there is none.
        has_failed: True if the server says that the tool failed or was denied.
        seconds: how long the reasoning or the tool has taken, once it has finished.
    """

    kind: ItemKind
    depth: int
    started_at: float
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    result: str | None = None
    has_failed: bool = False
    seconds: float = 0.0
    is_finished: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class ShownTurn:
    """Items of one turn, in the order of their begin.

    Attributes:
        items: all that ``pop_finished`` has not removed.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.items: list[Item] = []
        self._clock = clock
        self._open: dict[tuple[ItemKind, str], Item] = {}
        self._depths: dict[str, int] = {}

    def pop_finished(self) -> Item | None:
        return self.items.pop(0) if self.items and self.items[0].is_finished else None

    def end(self) -> None:
        """Finish all items, because no more events come."""
        for item in self.items:
            item.is_finished = True

    def feed(self, event: BaseEvent) -> None:
        """Take in an event. Events that show nothing change nothing."""
        depth = self._depths.get(getattr(event, "subagent_run_id", None) or "", 0)
        key = key_of(event)
        match event:
            case ToolCallStartEvent():
                self._open[key] = self._add(ItemKind.CALL, depth, without_controls(event.tool_call_name))
            case TextMessageStartEvent(role="assistant") | ReasoningMessageStartEvent():
                self._open[key] = self._add(key[0], depth)
            case TextMessageContentEvent() | ReasoningMessageContentEvent() | ToolCallArgsEvent() if key in self._open:
                self._open[key].pieces.append(without_controls(event.delta))
            case ToolCallEndEvent() if key in self._open:
                self._open[key].started_at = self._clock()
            case TextMessageEndEvent() | ReasoningMessageEndEvent() | ToolCallResultEvent() if key in self._open:
                self._finish(self._open.pop(key), event)
            case _:
                self._feed_note(event, depth)

    def _feed_note(self, event: BaseEvent, depth: int) -> None:
        match event:
            case StepStartedEvent():
                self._note(depth, event.step_name)
            case ActivitySnapshotEvent(activity_type="mcp-apps", content={"serverId": server}):
                self._note(depth, f"There is an app of {server}. The chat page shows it.")
            case ActivitySnapshotEvent():
                self._note(depth, event.activity_type)
            case SubagentStartedEvent():
                depth = self._depths.get(event.parent_subagent_run_id or "", 0)
                self._depths[event.subagent_run_id] = depth + 1
                self._note(depth, f"{event.name}: {event.description}" if event.description else event.name)
            case SubagentFinishedEvent():
                self._depths.pop(event.subagent_run_id, None)
            case SubagentErrorEvent():
                self._note(self._depths.pop(event.subagent_run_id, 1), f"failed: {event.message}")

    def _finish(self, item: Item, event: BaseEvent) -> None:
        if item.kind is ItemKind.CALL and item.is_finished:  # an approval has ended the turn in between
            item = replace(item)
            self.items.append(item)
        item.seconds = self._clock() - item.started_at
        item.is_finished = True
        if isinstance(event, ToolCallResultEvent):
            facts = event.metadata or {}
            if isinstance(measured := facts.get(DURATION), int):
                item.seconds = measured / 1000
            item.has_failed = bool(facts.get(FAILED) or facts.get(DENIED))
            item.result = without_controls(text_of(event.content))

    def _note(self, depth: int, text: str) -> None:
        note = self._add(ItemKind.NOTE, depth)
        note.pieces, note.is_finished = [without_controls(text)], True

    def _add(self, kind: ItemKind, depth: int, name: str = "") -> Item:
        item = Item(kind, depth, self._clock(), name)
        self.items.append(item)
        return item


def key_of(event: BaseEvent) -> tuple[ItemKind, str]:
    """Return what identifies the item of an event about a text, reasoning or a call."""
    if (call_id := getattr(event, "tool_call_id", None)) is not None:
        return ItemKind.CALL, call_id
    kind = ItemKind.REASONING if event.type.startswith("REASONING") else ItemKind.TEXT
    return kind, getattr(event, "message_id", "")
