"""Plain text of a conversation.

Rule: only the lines that name a speaker begin at the margin. The content of messages is indented, so that no content
can pass for a message of another speaker. Reasoning and activities are omitted.
"""

from collections.abc import Iterable, Iterator, Sequence

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    ContentPart,
    Message,
    ReasoningMessage,
    TextPart,
    ToolMessage,
)

from agui_container.protocol.conversation.transcript import has_failed

INDENT = "  "


def render_plaintext(messages: Iterable[Message], title: str | None = None) -> str:
    """Return the title and one paragraph per message. The text ends with a line break unless it is empty."""
    tools: dict[str, str] = {}
    paragraphs = [" ".join(title.split())] if title else []
    for message in messages:
        if isinstance(message, ReasoningMessage | ActivityMessage):
            continue
        if isinstance(message, AssistantMessage):
            tools |= {call.id: call.function.name for call in message.tool_calls or ()}
        lines = [f"{INDENT}{line}".rstrip() for line in "\n".join(_message_text(message)).splitlines()]
        paragraphs.append("\n".join([f"{_speaker(message, tools)}:", *lines]))
    return "\n\n".join(paragraphs) + "\n" if paragraphs else ""


def _speaker(message: Message, tools: dict[str, str]) -> str:
    """Return the name of the speaker on one line. Line breaks in tool names, which callers choose, are removed."""
    if isinstance(message, ToolMessage):
        return " ".join(f"Result of {tools.get(message.tool_call_id, 'a tool')}".split())
    return "Subagent" if message.subagent_run_id else message.role.capitalize()


def _message_text(message: Message) -> Iterator[str]:
    if isinstance(message, ActivityMessage):
        return
    yield from _text(message.content)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls or ():
            yield f"[calls {call.function.name} {call.function.arguments}]"
    if isinstance(message, ToolMessage) and has_failed(message):
        yield f"[failed: {message.error}]" if message.error else "[failed]"


def _text(content: str | Sequence[ContentPart] | None) -> Iterator[str]:
    if isinstance(content, str):
        if content:
            yield content
        return
    for part in content or ():
        yield part.text if isinstance(part, TextPart) else f"[{part.type}]"
