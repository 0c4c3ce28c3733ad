"""Markdown of the generated pages."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. A vertical line in a cell is escaped, because it would end the cell."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def code(text: object) -> str:
    """Return a code span."""
    return f"<code>{escaped(str(text))}</code>" if "|" in str(text) else f"`{text}`"


def escaped(text: str) -> str:
    """Return text for HTML inside a table, where a code span cannot hold a vertical line."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")


def page(title: str, opening: str, *parts: str) -> str:
    """Return a page: the title, a paragraph, and the rest."""
    return "\n\n".join([f"# {title}", opening, *parts]) + "\n"
