"""The port of a terminal on which a conversation shows itself."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from ag_ui.core import BaseEvent


class View(Protocol):
    """Shows a conversation.

    Attributes:
        shows_reasoning: True shows reasoning in full, False only how long it took.
    """

    shows_reasoning: bool

    def turn(self) -> AbstractAsyncContextManager[Callable[[BaseEvent], None]]:
        """Provide the function that shows the events of one turn."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Leave the terminal to a question in the middle of a turn."""
        ...

    def markdown(self, text: str) -> None:
        """Show a text in Markdown."""
        ...

    def note(self, text: str) -> None:
        """Show a line of this program."""
        ...

    def error(self, text: str) -> None:
        """Show what went wrong."""
        ...
