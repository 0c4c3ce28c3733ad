"""A conversation on a terminal: Markdown that is drawn while it arrives, spinners, indentation.

Rule: complete output is printed once, for good, and scrolls away as any output does. Only items that still change are
drawn again, ``FRAMES`` times a second whatever the number of events.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from textwrap import indent
from time import monotonic

from ag_ui.core import BaseEvent
from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from agui_container.cli.control_characters import without_controls
from agui_container.cli.terminal.turn import Item, ItemKind, ShownTurn

FRAMES = 10
"""Drawings in one second."""

INDENT = 3
"""Columns for each subagent around an item."""

RESULT_LINES, RESULT_CHARS, ARGUMENT_CHARS = 8, 1_000, 200
"""Limits of the shown part of a call. ``/export`` has all of it."""

MARKDOWN_CHARS = 4_000
"""Longest unfinished block that is drawn as Markdown. Only the end of a longer one is drawn, as it is."""

SPARE_ROWS = 3
"""Rows of the terminal that are never drawn again, so that it does not scroll in between."""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

BLOCKS = MarkdownIt("commonmark").enable("table")
BLOCKS.core.ruler.disable("inline")


class Screen:
    """A conversation on a terminal. ``Live`` draws it, as the items that still change.

    Attributes:
        shows_reasoning: True shows reasoning in full, False only how long it took.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.shows_reasoning = False
        self._console = console or Console()
        self._turn = ShownTurn(monotonic)
        self._live: Live | None = None

    def markdown(self, text: str) -> None:
        self._console.print(Markdown(without_controls(text)))

    def note(self, text: str) -> None:
        """Show a line of this program."""
        self._console.print(Text(without_controls(text), style="dim"))

    def error(self, text: str) -> None:
        """Show what went wrong."""
        self._console.print(Text(without_controls(text), style="red"))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[BaseEvent], None]]:
        """Provide the function that shows the events of one turn."""
        self._begin()
        drawing = asyncio.create_task(self._draw_frames(), name="drawing of a turn")
        try:
            yield self._turn.feed
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

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._live = Live(self, console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._live.start()

    def _end(self) -> None:
        """Print everything, and leave no rows that change."""
        self._turn.end()
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
        if final := [*self._final()]:
            self._console.print(Group(*final))
        elif self._live is not None:
            self._live.refresh()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(Group(*self._unfinished()), options, pad=False)
        for line in lines[-max(options.size.height - SPARE_ROWS, 1) :]:
            yield from line
            yield Segment.line()

    def _final(self) -> Iterator[RenderableType]:
        """Take what does not change any more."""
        while (item := self._turn.pop_finished()) is not None:
            if item.kind is ItemKind.TEXT:
                yield from self._final_text(item, item.text)
            else:
                yield self._drawn(item)
        if self._turn.items and (first := self._turn.items[0]).kind is ItemKind.TEXT:
            complete, rest = split_blocks(first.text)
            first.pieces = [rest]
            yield from self._final_text(first, complete)

    def _final_text(self, item: Item, text: str) -> Iterator[RenderableType]:
        if text := text.strip("\n"):
            yield indented(item, Markdown(text))
            yield ""

    def _unfinished(self) -> Iterator[RenderableType]:
        if not self._turn.items:
            yield Text(spinner())
        for item in self._turn.items:
            if item.kind is ItemKind.TEXT:
                text = item.text
                is_long = len(text) > MARKDOWN_CHARS
                yield indented(item, Text(text[-MARKDOWN_CHARS:]) if is_long else Markdown(text))
            else:
                yield self._drawn(item)

    def _drawn(self, item: Item) -> RenderableType:
        """Return an item that is no text, finished or not."""
        match item.kind:
            case ItemKind.CALL:
                return indented(item, drawn_call(item))
            case ItemKind.NOTE:
                return indented(item, Text(f"• {item.text}", style="cyan"))
        text, summary = item.text, f"Thought for {item.seconds:.1f} s"
        if not item.is_finished:
            text, summary = "\n".join(text.rstrip().splitlines()[-3:]), "Thinking…"
        elif not self.shows_reasoning:
            text = ""
        return indented(item, Text(f"{summary}\n{text}".rstrip(), style="dim italic"))


def indented(item: Item, content: RenderableType) -> RenderableType:
    """Return the content of an item, indented by the subagents around it."""
    return Padding(content, (0, 0, 0, INDENT * item.depth)) if item.depth else content


def split_blocks(text: str) -> tuple[str, str]:
    """Return the complete blocks of a Markdown text that grows, and the rest.

    A block is complete once another one has begun after it.
    """
    starts = [token.map[0] for token in BLOCKS.parse(text) if token.map and token.level == 0]
    if len(starts) < 2:  # noqa: PLR2004 - the last block may grow
        return "", text
    lines = text.split("\n")
    return "\n".join([*lines[: starts[-1]], ""]), "\n".join(lines[starts[-1] :])


def spinner() -> str:
    """Return the sign of work at this moment."""
    return SPINNER[int(monotonic() * FRAMES) % len(SPINNER)]


def drawn_call(call: Item) -> Text:
    """Return a call, with its result and how long it took. A finished call without a result waits for somebody."""
    arguments = call.text if len(call.text) <= ARGUMENT_CHARS else f"{call.text[:ARGUMENT_CHARS]}…"
    line = Text.assemble((call.name, "bold"), f" {arguments}")
    if not call.is_finished:
        return Text.assemble(f"{spinner()} ", line)
    if call.result is None:
        return Text.assemble("◌ ", line, (" waits", "yellow"))
    mark = ("✗ ", "red") if call.has_failed else ("✓ ", "green")
    head = Text.assemble(mark, line, (f"  {call.seconds:.1f} s", "dim"))
    result = indent(clipped_result(call.result.rstrip()), "  ")
    return Text.assemble(head, ("\n" if result else "") + result)


def clipped_result(text: str) -> str:
    """Return the begin of a result, and how much is left out."""
    shown = "".join(text[:RESULT_CHARS].splitlines(keepends=True)[:RESULT_LINES])
    return text if shown == text else f"{shown.rstrip()}\n… {len(text) - len(shown):,} more characters"
