"""A conversation as text, as Markdown and as HTML.

Rule: the text of a message is escaped in HTML, and indented in the transcript, so that it cannot imitate the heading of
another message. Markdown has it as it was written: show it with a renderer that runs no HTML.
"""

import html
from collections.abc import Iterator, Sequence
from textwrap import indent

from ag_ui.core import ActivityMessage, AssistantMessage, ContentPart, Message, ReasoningMessage, TextPart, ToolMessage

NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "Developer"}


def text_of(content: str | Sequence[ContentPart] | None) -> str:
    """Return the text of a content. Other parts are named."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text if isinstance(part, TextPart) else f"[{part.type}]" for part in content)


def transcript(messages: Sequence[Message]) -> str:
    """Return the conversation as plain text, without reasoning."""
    return "\n\n".join(f"{name}:\n{indent(text, '  ')}" for name, text in _entries(messages))


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
    names = {
        call.id: call.function.name
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls or ()
    }
    for message in messages:
        if isinstance(message, ReasoningMessage | ActivityMessage):
            continue
        if isinstance(message, ToolMessage):
            yield f"Result of {names.get(message.tool_call_id, 'a tool')}", text_of(message.content)
            continue
        text = text_of(message.content)
        if isinstance(message, AssistantMessage):
            calls = [f"[calls {each.function.name} {each.function.arguments}]" for each in message.tool_calls or ()]
            text = "\n".join(filter(None, [text, *calls]))
        if text:
            yield NAMES[message.role], text
