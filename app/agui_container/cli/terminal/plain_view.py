"""A conversation as plain text, for pipes, dumb terminals and ``NO_COLOR``."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic

import click
from ag_ui.core import BaseEvent

from agui_container.cli.control_characters import without_controls
from agui_container.cli.terminal.turn import CallItem, NoteItem, ReasoningItem, ShownTurn, TextItem, TurnItem

INDENT = "  "


class PlainView:
    """Implements ``View``. A text is written as it arrives, everything else once it is complete."""

    def __init__(self) -> None:
        self.shows_reasoning = False
        self._turn = ShownTurn(monotonic)
        self._open: TextItem | None = None
        """The text whose line has not ended."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[BaseEvent], None]]:
        """Provide the function that shows the events of one turn."""
        try:
            yield self._show
        finally:
            self._end()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question in the middle of a turn."""
        self._end()
        yield

    def _end(self) -> None:
        self._turn.end()
        self._write_items()

    def markdown(self, text: str) -> None:
        """Show a text in Markdown."""
        click.echo(without_controls(text))

    def note(self, text: str) -> None:
        """Show a line of this program."""
        click.echo(without_controls(text))

    def error(self, text: str) -> None:
        """Show what went wrong."""
        click.echo(without_controls(text), err=True)

    def _show(self, event: BaseEvent) -> None:
        self._turn.feed(event)
        self._write_items()

    def _write_items(self) -> None:
        while (item := self._turn.pop_finished()) is not None:
            self._write_text(item) if isinstance(item, TextItem) else self._write_line(item)
            self._end_line()
        if self._turn.items and isinstance(first := self._turn.items[0], TextItem):
            self._write_text(first)

    def _write_text(self, item: TextItem) -> None:
        if text := item.take():
            if self._open is None:
                click.echo(INDENT * item.depth, nl=False)
            self._open = item
            click.echo(without_controls(text).replace("\n", f"\n{INDENT * item.depth}"), nl=False)
            sys.stdout.flush()

    def _end_line(self) -> None:
        if self._open is not None:
            click.echo()
            self._open = None

    def _write_line(self, item: TurnItem) -> None:
        if line := plain_line(item, shows_reasoning=self.shows_reasoning):
            click.echo(INDENT * item.depth + without_controls(line))


def plain_line(item: TurnItem, *, shows_reasoning: bool) -> str:
    """Return an item other than a text as one line, or an empty text if nothing of it is shown."""
    match item:
        case ReasoningItem():
            return item.text if shows_reasoning else f"(thought for {item.seconds:.1f} s)"
        case CallItem(result=None):
            return f"[{item.name} {item.arguments}] waits"
        case CallItem():
            mark = " failed" if item.has_failed else ""
            return f"[{item.name} {item.arguments}]{mark} {item.seconds:.1f} s: {item.result}"
        case NoteItem():
            return f"- {item.text}"
    return ""
