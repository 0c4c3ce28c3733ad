"""Items that a turn of the agent shows: texts, reasoning, tool calls, subagents and activities.

Rule: pure state, changed by events and by a clock that is given. An item is finished once nothing more can change it,
so that a terminal can print it for good.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from typing import TypeVar

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
from agui_container.protocol.conversation.transcript import DENIED, DURATION, FAILED

T = TypeVar("T", bound="TurnItem")


@dataclass
class TurnItem:
    """Something to show.

    Attributes:
        depth: number of subagents around it.
        is_finished: True once it does not change any more.
    """

    depth: int
    is_finished: bool = False


@dataclass
class TextItem(TurnItem):
    """A message of the agent, in Markdown. ``pieces`` are its deltas, which ``take`` joins and removes."""

    pieces: list[str] = field(default_factory=list)

    def take(self) -> str:
        """Return the text that has arrived since the last call."""
        text = "".join(self.pieces)
        self.pieces.clear()
        return text


@dataclass
class ReasoningItem(TurnItem):
    """Reasoning of the model. ``seconds`` is how long it has taken, once it is finished."""

    started_at: float = 0.0
    seconds: float = 0.0
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that has arrived."""
        return "".join(self.pieces)


@dataclass
class CallItem(TurnItem):
    """A tool call.

    Attributes:
        pieces: the arguments as JSON text.
        result: text of the result, or None while there is none.
        has_failed: True if the server says that the tool failed or was denied.
        seconds: how long the tool has taken.
    """

    name: str = ""
    pieces: list[str] = field(default_factory=list)
    result: str | None = None
    has_failed: bool = False
    started_at: float = 0.0
    seconds: float = 0.0

    @property
    def arguments(self) -> str:
        """The arguments so far."""
        return "".join(self.pieces)


@dataclass
class NoteItem(TurnItem):
    """One line: a step, the begin or the failure of a subagent, or an activity."""

    text: str = ""


class ShownTurn:
    """Items of one turn, in the order of their begin.

    Attributes:
        items: those that have not been taken by ``pop_finished``.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.items: list[TurnItem] = []
        self._clock = clock
        self._texts: dict[str, TextItem] = {}
        self._reasoning: dict[str, ReasoningItem] = {}
        self._calls: dict[str, CallItem] = {}
        self._depths: dict[str, int] = {}

    def pop_finished(self) -> TurnItem | None:
        """Remove the first item and return it if it is finished."""
        return self.items.pop(0) if self.items and self.items[0].is_finished else None

    def end(self) -> None:
        """Finish all items, because no more events come."""
        for item in self.items:
            item.is_finished = True

    @singledispatchmethod
    def feed(self, event: BaseEvent) -> None:
        """Take in an event. Events that show nothing change nothing."""

    # --- texts and reasoning ------------------------------------------------------------------------------------------

    @feed.register
    def _(self, event: TextMessageStartEvent) -> None:
        if (event.role or "assistant") == "assistant":
            self._texts[event.message_id] = self._add(TextItem(self._depth(event.subagent_run_id)))

    @feed.register
    def _(self, event: TextMessageContentEvent) -> None:
        if (text := self._texts.get(event.message_id)) is not None:
            text.pieces.append(event.delta)

    @feed.register
    def _(self, event: TextMessageEndEvent) -> None:
        if (text := self._texts.pop(event.message_id, None)) is not None:
            text.is_finished = True

    @feed.register
    def _(self, event: ReasoningMessageStartEvent) -> None:
        reasoning = ReasoningItem(self._depth(event.subagent_run_id), started_at=self._clock())
        self._reasoning[event.message_id] = self._add(reasoning)

    @feed.register
    def _(self, event: ReasoningMessageContentEvent) -> None:
        if (reasoning := self._reasoning.get(event.message_id)) is not None:
            reasoning.pieces.append(event.delta)

    @feed.register
    def _(self, event: ReasoningMessageEndEvent) -> None:
        if (reasoning := self._reasoning.pop(event.message_id, None)) is not None:
            reasoning.seconds = self._clock() - reasoning.started_at
            reasoning.is_finished = True

    # --- calls --------------------------------------------------------------------------------------------------------

    @feed.register
    def _(self, event: ToolCallStartEvent) -> None:
        call = CallItem(self._depth(event.subagent_run_id), name=event.tool_call_name, started_at=self._clock())
        self._calls[event.tool_call_id] = self._add(call)

    @feed.register
    def _(self, event: ToolCallArgsEvent) -> None:
        if (call := self._calls.get(event.tool_call_id)) is not None:
            call.pieces.append(event.delta)

    @feed.register
    def _(self, event: ToolCallEndEvent) -> None:
        if (call := self._calls.get(event.tool_call_id)) is not None:
            call.started_at = self._clock()

    @feed.register
    def _(self, event: ToolCallResultEvent) -> None:
        call = self._calls.pop(event.tool_call_id, None)
        if call is None:
            return
        if call.is_finished:  # an approval has ended the turn in between
            call = self._add(replace(call))
        facts = event.metadata or {}
        measured = facts.get(DURATION)
        call.seconds = measured / 1000 if isinstance(measured, int) else self._clock() - call.started_at
        call.has_failed = bool(facts.get(FAILED) or facts.get(DENIED))
        call.result = text_of(event.content)
        call.is_finished = True

    # --- subagents, steps, activities ---------------------------------------------------------------------------------

    @feed.register
    def _(self, event: SubagentStartedEvent) -> None:
        depth = self._depth(event.parent_subagent_run_id)
        self._depths[event.subagent_run_id] = depth + 1
        about = f": {event.description}" if event.description else ""
        self._add(NoteItem(depth, is_finished=True, text=f"{event.name}{about}"))

    @feed.register
    def _(self, event: SubagentFinishedEvent) -> None:
        self._depths.pop(event.subagent_run_id, None)

    @feed.register
    def _(self, event: SubagentErrorEvent) -> None:
        depth = self._depths.pop(event.subagent_run_id, 1)
        self._add(NoteItem(depth, is_finished=True, text=f"failed: {event.message}"))

    @feed.register
    def _(self, event: StepStartedEvent) -> None:
        self._add(NoteItem(self._depth(event.subagent_run_id), is_finished=True, text=event.step_name))

    @feed.register
    def _(self, event: ActivitySnapshotEvent) -> None:
        self._add(NoteItem(self._depth(event.subagent_run_id), is_finished=True, text=event.activity_type))

    def _depth(self, subagent_run_id: str | None) -> int:
        return self._depths.get(subagent_run_id or "", 0)

    def _add(self, item: T) -> T:
        self.items.append(item)
        return item
