"""A conversation on a terminal: Markdown that is drawn while it arrives, reasoning, tool calls, and notes.

Rules:

- Complete output is printed once, for good, and scrolls away as any output does. Only items that still change are drawn
  again, ``FRAMES`` times a second whatever the number of events.
- No text of an agent keeps its control characters.
- A subagent is one note, as its texts and calls are no part of the answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from textwrap import indent
from time import monotonic

from ag_ui.core import (
    ActivitySnapshotEvent,
    BaseEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from agui_container.cli.failure import without_controls
from agui_core.content import text_of
from agui_core.transcript import DENIED, DURATION, FAILED

FRAMES = 10
"""Drawings in one second."""

RESULT_LINES, RESULT_CHARS, ARGUMENT_CHARS = 8, 1_000, 200
"""Limits of the shown part of a call. ``agui threads show`` has all of it."""

MARKDOWN_CHARS = 4_000
"""Longest unfinished block that is drawn as Markdown. Only the end of a longer one is drawn, as it is."""

SPARE_ROWS = 3
"""Rows of the terminal that are never drawn again, so that it does not scroll in between."""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

BLOCKS = MarkdownIt("commonmark").enable("table")
BLOCKS.core.ruler.disable("inline")


@dataclass(eq=False)
class Item:
    """Something that a turn shows, here a note.

    Attributes:
        text: as far as it has arrived. Of a call it is the arguments as JSON text.
        seconds: how long it has taken, once it has finished.
    """

    text: str = ""
    began: float = field(default_factory=monotonic)
    seconds: float = 0.0
    is_finished: bool = False

    def finish(self) -> None:
        self.seconds, self.is_finished = monotonic() - self.began, True

    def drawn(self) -> RenderableType:
        return Text(f"• {self.text}", style="cyan")

    def take_final(self) -> Iterator[RenderableType]:
        """Take what does not change any more."""
        if self.is_finished:
            yield self.drawn()


class AnswerItem(Item):
    """A text of the agent. Its complete blocks are final before it has finished."""

    def drawn(self) -> RenderableType:
        text = self.text.strip("\n")
        is_long = len(text) > MARKDOWN_CHARS and not self.is_finished
        return Text(text[-MARKDOWN_CHARS:]) if is_long else Markdown(text)

    def take_final(self) -> Iterator[RenderableType]:
        """Take the complete blocks. A block is complete once another one has begun after it."""
        starts = [token.map[0] for token in BLOCKS.parse(self.text) if token.map and token.level == 0]
        lines = self.text.split("\n")
        at = len(lines) if self.is_finished else starts[-1] if len(starts) > 1 else 0
        complete = replace(self, text="\n".join(lines[:at]), is_finished=True)
        self.text = "\n".join(lines[at:])
        if complete.text.strip("\n"):
            yield from (complete.drawn(), "")


class Reasoning(Item):
    """Reasoning. Of a finished one only the duration is shown."""

    def drawn(self) -> RenderableType:
        last = "\n".join(self.text.rstrip().splitlines()[-3:])
        shown = f"Thought for {self.seconds:.1f} s" if self.is_finished else f"Thinking…\n{last}".rstrip()
        return Text(shown, style="dim italic")


@dataclass(eq=False)
class CallItem(Item):
    """A tool call. A finished one without a result waits for somebody."""

    name: str = ""
    result: str | None = None
    has_failed: bool = False

    def take_result(self, event: ToolCallResultEvent) -> None:
        self.finish()
        facts = event.metadata or {}
        if isinstance(measured := facts.get(DURATION), int):
            self.seconds = measured / 1000
        self.has_failed = bool(facts.get(FAILED) or facts.get(DENIED))
        self.result = without_controls(text_of(event.content))

    def drawn(self) -> RenderableType:
        arguments = self.text if len(self.text) <= ARGUMENT_CHARS else f"{self.text[:ARGUMENT_CHARS]}…"
        line = Text.assemble((self.name, "bold"), f" {arguments}")
        if not self.is_finished:
            return Text.assemble(f"{spinner()} ", line)
        if self.result is None:
            return Text.assemble("◌ ", line, (" waits", "yellow"))
        mark = ("✗ ", "red") if self.has_failed else ("✓ ", "green")
        result = indent(clipped(self.result.rstrip()), "  ")
        return Text.assemble(mark, line, (f"  {self.seconds:.1f} s", "dim"), ("\n" if result else "") + result)


class Screen:
    """A conversation on a terminal. ``Live`` draws it, as the items that still change."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._live: Live | None = None
        self._items: list[Item] = []
        self._open: dict[tuple[str, str], Item] = {}

    def markdown(self, text: str) -> None:
        self._console.print(Markdown(without_controls(text)))

    def note(self, text: str) -> None:
        """Show a line of this program."""
        self._console.print(Text(without_controls(text), style="dim"))

    def error(self, text: str) -> None:
        self._console.print(Text(without_controls(text), style="red"))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[BaseEvent], None]]:
        """Provide the function that shows the events of one turn."""
        self._begin()
        drawing = asyncio.create_task(self._draw_frames(), name="drawing of a turn")
        try:
            yield self._feed
        finally:
            self._end()
            drawing.cancel()
            with suppress(asyncio.CancelledError):
                await drawing

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question in the middle of a turn."""
        self._end()
        try:
            yield
        finally:
            self._begin()

    # --- events -------------------------------------------------------------------------------------------------------

    def _feed(self, event: BaseEvent) -> None:
        """Take in an event. Events that show nothing change nothing."""
        if note := note_of(event):
            self._items.append(Item(without_controls(note), is_finished=True))
        elif getattr(event, "subagent_run_id", None) is None:
            self._feed_item(event, key_of(event))

    def _feed_item(self, event: BaseEvent, key: tuple[str, str]) -> None:
        match event, self._open.get(key):
            case TextMessageStartEvent(role="assistant"), _:
                self._open_item(key, AnswerItem())
            case ReasoningMessageStartEvent(), _:
                self._open_item(key, Reasoning())
            case ToolCallStartEvent(), _:
                self._open_item(key, CallItem(name=without_controls(event.tool_call_name)))
            case TextMessageContentEvent() | ReasoningMessageContentEvent() | ToolCallArgsEvent(), Item() as item:
                item.text += without_controls(event.delta)
            case ToolCallEndEvent(), Item() as item:
                item.began = monotonic()
            case TextMessageEndEvent() | ReasoningMessageEndEvent(), Item():
                self._open.pop(key).finish()
            case ToolCallResultEvent(), CallItem() as call:
                del self._open[key]
                call.take_result(event)
                if call not in self._items:  # an approval has ended the turn in between, and printed the call
                    self._items.append(call)

    def _open_item(self, key: tuple[str, str], item: Item) -> None:
        self._open[key] = item
        self._items.append(item)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._live = Live(self, console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def _end(self) -> None:
        """Print everything, and leave no rows that change."""
        for item in self._items:
            item.is_finished = True
        self._draw()
        if self._live is not None:
            self._live.stop()
            self._live = None

    async def _draw_frames(self) -> None:
        while True:
            if self._live is not None:
                self._draw()
            await asyncio.sleep(1 / FRAMES)

    def _draw(self) -> None:
        """Print what does not change any more, and draw the rest under it, in one write."""
        final: list[RenderableType] = []
        while self._items:
            final += self._items[0].take_final()
            if not self._items[0].is_finished:
                break
            del self._items[0]
        if final:
            self._console.print(Group(*final))
        elif self._live is not None:
            self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unfinished = [item.drawn() for item in self._items] or [Text(spinner())]
        lines = console.render_lines(Group(*unfinished), options, pad=False)
        for line in lines[-max(options.size.height - SPARE_ROWS, 1) :]:
            yield from line
            yield Segment.line()


def note_of(event: BaseEvent) -> str:
    """Return what an event says in one line, or nothing."""
    match event:
        case ActivitySnapshotEvent(activity_type="mcp-apps", content={"serverId": server}):
            return f"There is an app of {server}. The chat page shows it."
        case ActivitySnapshotEvent():
            return event.activity_type
        case SubagentStartedEvent():
            return f"{event.name}: {event.description}" if event.description else event.name
        case SubagentErrorEvent():
            return f"failed: {event.message}"
        case StepStartedEvent():
            return event.step_name
    return ""


def key_of(event: BaseEvent) -> tuple[str, str]:
    """Return what identifies the item of an event about a text, reasoning or a call."""
    call_id = getattr(event, "tool_call_id", None)
    return event.type.partition("_")[0], getattr(event, "message_id", "") if call_id is None else call_id


def spinner() -> str:
    """Return the sign of work at this moment."""
    return SPINNER[int(monotonic() * FRAMES) % len(SPINNER)]


def clipped(text: str) -> str:
    """Return the begin of a result, and how much is left out."""
    shown = "".join(text[:RESULT_CHARS].splitlines(keepends=True)[:RESULT_LINES])
    return text if shown == text else f"{shown.rstrip()}\n… {len(text) - len(shown):,} more characters"
