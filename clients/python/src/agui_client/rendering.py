"""A conversation as Markdown and as HTML.

Rule: the text of a message is escaped in HTML, so that it cannot imitate the heading of another message. Markdown has
it as it was written: show it with a renderer that runs no HTML.
"""

import html
from collections.abc import Sequence

from ag_ui.core import Message

from agui_core.plaintext import speeches


def markdown(messages: Sequence[Message]) -> str:
    """Return the conversation as Markdown. The text of messages keeps its own Markdown."""
    return "\n\n".join(f"**{speaker}**\n\n{text}" for _, speaker, text in speeches(messages) if text)


def as_html(messages: Sequence[Message], title: str | None, status: str) -> str:
    heading = f"<b>{html.escape(title or 'Conversation')}</b> <small>{html.escape(status)}</small>"
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{html.escape(speaker)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{html.escape(text)}</td></tr>'
        for _, speaker, text in speeches(messages)
        if text
    )
    return f"<div>{heading}<table>{rows}</table></div>"
