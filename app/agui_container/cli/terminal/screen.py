"""A conversation on a terminal: Markdown that is drawn while it arrives, spinners, indentation.

Rule: complete output is printed once, for good, and scrolls away as any output does. Only items that still change are
drawn again, ``FRAMES`` times a second whatever the number of events. So a fast agent costs no more than a slow one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from time import monotonic

from ag_ui.core import BaseEvent
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text as Line

from agui_container.cli.control_characters import without_controls
from agui_container.cli.terminal.keyboard import echo
from agui_container.cli.terminal.live_rows import LiveRows
from agui_container.cli.terminal.markdown_blocks import MarkdownBlocks
from agui_container.cli.terminal.turn import CallItem, NoteItem, ReasoningItem, ShownTurn, TextItem, TurnItem

FRAMES = 10
"""Drawings in one second."""

INDENT = 3
"""Columns for each subagent around an item."""

RESULT_LINES, RESULT_CHARS = 8, 1_000
ARGUMENT_CHARS = 200
"""Limits of the shown part of a call. ``/export`` has all of it."""

MARKDOWN_CHARS = 4_000
"""Longest unfinished block that is drawn as Markdown. Only the end of a longer one is drawn, as it is."""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Screen:
    """Implements ``View`` on a terminal."""

    def __init__(self, console: Console) -> None:
        self.shows_reasoning = False
        self._turn = ShownTurn(monotonic)
        self._blocks: tuple[TextItem, MarkdownBlocks] | None = None
        self._rows = LiveRows(console)
        self._is_paused = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[BaseEvent], None]]:
        """Provide the function that shows the events of one turn."""
        drawing = asyncio.create_task(self._draw_frames(), name="drawing of a turn")
        try:
            with echo(on=False), self._hidden_cursor():
                try:
                    yield self._turn.feed
                finally:
                    self._end()
        finally:
            drawing.cancel()
            with suppress(asyncio.CancelledError):
                await drawing

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question in the middle of a turn."""
        self._end()
        self._is_paused = True
        self._rows.show_cursor(visible=True)
        try:
            with echo(on=True):
                yield
        finally:
            self._rows.show_cursor(visible=False)
            self._is_paused = False

    @contextmanager
    def _hidden_cursor(self) -> Iterator[None]:
        self._rows.show_cursor(visible=False)
        try:
            yield
        finally:
            self._rows.show_cursor(visible=True)

    def _end(self) -> None:
        """Print everything, and leave no rows that change."""
        self._turn.end()
        self._rows.draw([*self._final()], None)

    def markdown(self, text: str) -> None:
        """Show a text in Markdown."""
        self._rows.show(Markdown(without_controls(text)))

    def note(self, text: str) -> None:
        """Show a line of this program."""
        self._rows.show(Line(without_controls(text), style="dim"))

    def error(self, text: str) -> None:
        """Show what went wrong."""
        self._rows.show(Line(without_controls(text), style="red"))

    # --- drawing ------------------------------------------------------------------------------------------------------

    async def _draw_frames(self) -> None:
        while True:
            if not self._is_paused:
                self._rows.draw([*self._final()], Group(*self._unfinished()))
            await asyncio.sleep(1 / FRAMES)

    def _final(self) -> Iterator[RenderableType]:
        """Take what does not change any more."""
        while (item := self._turn.pop_finished()) is not None:
            if isinstance(item, TextItem):
                yield from self._final_text(item, self._blocks_of(item).pop_all())
                self._blocks = None
            else:
                yield self._indented(item, self._finished(item))
        if self._turn.items and isinstance(first := self._turn.items[0], TextItem):
            yield from self._final_text(first, self._blocks_of(first).pop_complete())

    def _final_text(self, item: TextItem, text: str) -> Iterator[RenderableType]:
        if text.strip():
            yield self._indented(item, Markdown(text))
            yield ""

    def _blocks_of(self, item: TextItem) -> MarkdownBlocks:
        """Return the blocks of the first text, with all that has arrived."""
        if self._blocks is None or self._blocks[0] is not item:
            self._blocks = item, MarkdownBlocks()
        blocks = self._blocks[1]
        blocks.feed(without_controls(item.take()))
        return blocks

    def _unfinished(self) -> Iterable[RenderableType]:
        if not self._turn.items:
            yield Line(spinner())
        for place, item in enumerate(self._turn.items):
            if isinstance(item, TextItem):
                text = self._blocks_of(item).rest if place == 0 else without_controls("".join(item.pieces))
                yield self._indented(item, growing(text))
            elif item.is_finished:
                yield self._indented(item, self._finished(item))
            else:
                yield self._indented(item, self._growing(item))

    def _growing(self, item: TurnItem) -> RenderableType:
        match item:
            case ReasoningItem():
                return Line(f"Thinking…\n{tail(without_controls(item.text))}", style="dim italic")
            case CallItem():
                return Line.assemble(f"{spinner()} ", call_line(item))
        return ""

    def _finished(self, item: TurnItem) -> RenderableType:
        match item:
            case ReasoningItem():
                summary = f"Thought for {item.seconds:.1f} s"
                text = f"{summary}\n{without_controls(item.text)}" if self.shows_reasoning else summary
                return Line(text, style="dim italic")
            case CallItem():
                return finished_call(item)
            case NoteItem():
                return Line(f"• {without_controls(item.text)}", style="cyan")
        return ""

    def _indented(self, item: TurnItem, content: RenderableType) -> RenderableType:
        return Padding(content, (0, 0, 0, INDENT * item.depth)) if item.depth else content


def spinner() -> str:
    """Return the sign of work at this moment."""
    return SPINNER[int(monotonic() * FRAMES) % len(SPINNER)]


def growing(text: str) -> RenderableType:
    """Return an unfinished block: as Markdown, or only its end if it is long."""
    return Markdown(text) if len(text) <= MARKDOWN_CHARS else Line(text[-MARKDOWN_CHARS:])


def tail(text: str, lines: int = 3) -> str:
    """Return the last lines of a text."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def call_line(call: CallItem) -> Line:
    """Return the name and the arguments of a call."""
    arguments = without_controls(call.arguments)
    clipped = arguments if len(arguments) <= ARGUMENT_CHARS else f"{arguments[:ARGUMENT_CHARS]}…"
    return Line.assemble((without_controls(call.name), "bold"), f" {clipped}")


def finished_call(call: CallItem) -> RenderableType:
    """Return a call with its result and how long it took. A call without a result waits for somebody."""
    if call.result is None:
        return Line.assemble("◌ ", call_line(call), (" waits", "yellow"))
    mark = ("✗ ", "red") if call.has_failed else ("✓ ", "green")
    head = Line.assemble(mark, call_line(call), (f"  {call.seconds:.1f} s", "dim"))
    result = without_controls(clipped_result(call.result.rstrip()))
    return Group(head, Padding(Line(result, style="dim"), (0, 0, 0, 2))) if result else head


def clipped_result(text: str) -> str:
    """Return the begin of a result, and how much is left out."""
    shown = "".join(text[:RESULT_CHARS].splitlines(keepends=True)[:RESULT_LINES])
    return text if shown == text else f"{shown.rstrip()}\n… {len(text) - len(shown):,} more characters"
