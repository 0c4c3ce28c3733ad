"""A conversation as Markdown and as HTML.

Rule: the text of a message is escaped in HTML, so that it cannot imitate the heading of another message. Markdown has
it as it was written: show it with a renderer that runs no HTML.
"""

import html
from collections.abc import Iterator, Sequence

from ag_ui.core import ActivityMessage, ContentPart, Message, ReasoningMessage, TextPart, ToolMessage

from agui_core.turns import calls_of

NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "Developer"}


def text_of(content: str | Sequence[ContentPart] | None) -> str:
    """Return the text of a content. Other parts are named."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text if isinstance(part, TextPart) else f"[{part.type}]" for part in content)


def markdown(messages: Sequence[Message]) -> str:
    """Return the conversation as Markdown. The text of messages keeps its own Markdown."""
    return "\n\n".join(f"**{name}**\n\n{text}" for name, text in _entries(messages))


def as_html(messages: Sequence[Message], title: str | None, status: str) -> str:
    """Return the conversation as a fragment of HTML."""
    heading = f"<b>{html.escape(title or 'Conversation')}</b> <small>{html.escape(status)}</small>"
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{html.escape(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{html.escape(text)}</td></tr>'
        for name, text in _entries(messages)
    )
    return f"<div>{heading}<table>{rows}</table></div>"


def _entries(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Name and text of each message that people read."""
    tools: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ReasoningMessage | ActivityMessage):
            continue
        tools |= {call.id: call.function.name for call in calls_of(message)}
        calls = [f"[calls {call.function.name} {call.function.arguments}]" for call in calls_of(message)]
        if isinstance(message, ToolMessage):
            yield f"Result of {tools.get(message.tool_call_id, 'a tool')}", text_of(message.content)
        elif text := "\n".join(filter(None, [text_of(message.content), *calls])):
            yield NAMES[message.role], text
