"""Rows at the end of a terminal that still change, under the output that stays.

Rules:

- A frame is one write, and writes only from the first row on that has changed. It puts new text over the old one and
  clears nothing before, so that nothing flickers, and text that has become final is not written again.
- Rows that change never wrap. A terminal that has just become narrower cuts them, and the next frame finds their begin.
"""

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

SPARE_ROWS = 3
"""Rows of the terminal that are never drawn again, so that it does not scroll in between."""

UP, CLEAR_LINE_END, CLEAR_BELOW = "\x1b[{}A", "\x1b[K", "\x1b[J"
WRAP, NO_WRAP, SHOW_CURSOR, HIDE_CURSOR = "\x1b[?7h", "\x1b[?7l", "\x1b[?25h", "\x1b[?25l"


class LiveRows:
    """The rows that change. The cursor is in the line after them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: list[str] = []
        self._width = console.width
        self._growing: RenderableType | None = None

    def show(self, *final: RenderableType) -> None:
        """Print output that stays above the rows."""
        self.draw(final, self._growing)

    def draw(self, final: Sequence[RenderableType], growing: RenderableType | None) -> None:
        """Print output that stays, and replace the rows under it. None leaves no rows."""
        console = self._console
        above = self._render(final)
        below = self._render([] if growing is None else [growing])[-max(console.height - SPARE_ROWS, 1) :]
        rows = [*above, *below]
        equal = self._count_equal(rows) if console.width == self._width else 0
        if not equal == len(rows) == len(self._rows):
            up = UP.format(len(self._rows) - equal) if equal < len(self._rows) else ""
            changing = self._lines(below[max(equal - len(above), 0) :])
            clear = CLEAR_BELOW if len(rows) < len(self._rows) else ""
            console.file.write(f"{up}{self._lines(above[equal:])}{NO_WRAP}{changing}{WRAP}{clear}")
            console.file.flush()
        self._rows, self._width, self._growing = below, console.width, growing

    def _count_equal(self, rows: Sequence[str]) -> int:
        """Return the number of first rows that are on the terminal already."""
        pairs = enumerate(zip(rows, self._rows, strict=False))
        return next((at for at, (new, old) in pairs if new != old), min(len(rows), len(self._rows)))

    def _lines(self, rows: Sequence[str]) -> str:
        return "".join(f"{row}{CLEAR_LINE_END if self._has_room(row) else ''}\n" for row in rows)

    def _has_room(self, row: str) -> bool:
        """Return True if a row does not fill its line. A terminal would clear the last character of a full one."""
        return Text.from_ansi(row).cell_len < self._console.width

    def _render(self, contents: Sequence[RenderableType]) -> list[str]:
        with self._console.capture() as captured:
            for content in contents:
                self._console.print(content)
        return [row.rstrip(" ") for row in captured.get().split("\n")[:-1]]

    def show_cursor(self, *, visible: bool) -> None:
        """Show or hide the cursor."""
        self._console.file.write(SHOW_CURSOR if visible else HIDE_CURSOR)
        self._console.file.flush()
