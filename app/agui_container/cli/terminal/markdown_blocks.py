"""Markdown that arrives in pieces: the blocks that are complete, and the rest.

Rule: a block is complete once another one has begun after it. So a terminal prints each block once, in its final form,
and only the last one is drawn again while it grows.
"""

from markdown_it import MarkdownIt


class MarkdownBlocks:
    """A Markdown text that grows.

    Attributes:
        rest: the text after the complete blocks.
    """

    def __init__(self) -> None:
        self.rest = ""
        self._parser = MarkdownIt("commonmark").enable("table")
        self._parser.core.ruler.disable("inline")

    def feed(self, text: str) -> None:
        """Add text at the end."""
        self.rest += text

    def pop_complete(self) -> str:
        """Remove the complete blocks and return them, or an empty text."""
        starts = [token.map[0] for token in self._parser.parse(self.rest) if token.map and token.level == 0]
        if len(starts) < 2:  # noqa: PLR2004 - the last block may grow
            return ""
        lines = self.rest.split("\n")
        complete, self.rest = "\n".join([*lines[: starts[-1]], ""]), "\n".join(lines[starts[-1] :])
        return complete

    def pop_all(self) -> str:
        """Remove everything and return it."""
        text, self.rest = self.rest, ""
        return text
