"""A conversation as plain text, as Markdown and as HTML. Reasoning and activities are omitted.

Rule: no content can pass for a message of another speaker. In plain text only the lines that name a speaker begin at
the margin, and content is indented. In HTML it is escaped. Only Markdown has it as it was written: show that with a
renderer that runs no HTML.
"""

import html
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ag_ui.core import ActivityMessage, Message, ReasoningMessage, ToolMessage
from msgspec import Struct

from agui_core.content import text_of
from agui_core.transcript import has_failed
from agui_core.turns import calls_of

INDENT = "  "


class AskedQuestion(Struct, frozen=True):
    """A question of an agent, and its answer if it has one. ``after`` is the id of the message before it."""

    text: str
    answer: str | None = None
    after: str | None = None


def render_plaintext(
    messages: Iterable[Message], title: str | None = None, questions: Iterable[AskedQuestion] = ()
) -> str:
    """Return the title and a paragraph per message, question and answer.

    The text ends with a line break unless it is empty.
    """
    asked: defaultdict[str | None, list[str]] = defaultdict(list)
    for question in questions:
        asked[question.after] += _paragraphs_of(question)
    paragraphs = [*([" ".join(title.split())] if title else []), *asked[None]]
    for message_id, speaker, text in speeches(messages):
        paragraphs += [_paragraph(speaker, text)] if speaker else []
        paragraphs += asked[message_id]
    return "\n\n".join(paragraphs) + "\n" if paragraphs else ""


def markdown(messages: Iterable[Message]) -> str:
    """Return the conversation as Markdown. The text of messages keeps its own Markdown."""
    return "\n\n".join(f"**{speaker}**\n\n{text}" for _, speaker, text in speeches(messages) if text)


def as_html(messages: Iterable[Message], title: str | None, status: str) -> str:
    heading = f"<b>{html.escape(title or 'Conversation')}</b> <small>{html.escape(status)}</small>"
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{html.escape(speaker)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{html.escape(text)}</td></tr>'
        for _, speaker, text in speeches(messages)
        if text
    )
    return f"<div>{heading}<table>{rows}</table></div>"


def speeches(messages: Iterable[Message]) -> Iterator[tuple[str, str, str]]:
    """Yield id, speaker and text of each message. Reasoning and activities have no speaker."""
    tools: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ReasoningMessage | ActivityMessage):
            yield message.id, "", ""
            continue
        tools |= {call.id: call.function.name for call in calls_of(message)}
        calls = [f"[calls {call.function.name} {call.function.arguments}]" for call in calls_of(message)]
        if isinstance(message, ToolMessage) and has_failed(message):
            calls = [f"[failed: {message.error}]" if message.error else "[failed]"]
        yield message.id, _speaker(message, tools), "\n".join(filter(None, [text_of(message.content), *calls]))


def _paragraphs_of(question: AskedQuestion) -> Iterator[str]:
    yield _paragraph("Question", question.text)
    if question.answer is not None:
        yield _paragraph("Answer", question.answer)


def _paragraph(speaker: str, text: str) -> str:
    return "\n".join([f"{speaker}:", *(f"{INDENT}{line}".rstrip() for line in text.splitlines())])


def _speaker(message: Message, tools: dict[str, str]) -> str:
    """Return the name of the speaker on one line. Line breaks in tool names, which callers choose, are removed."""
    if isinstance(message, ToolMessage):
        return " ".join(f"Result of {tools.get(message.tool_call_id, 'a tool')}".split())
    return "Subagent" if message.subagent_run_id else message.role.capitalize()
