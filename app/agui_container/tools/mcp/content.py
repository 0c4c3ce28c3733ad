"""Results of MCP tools as content of AG-UI.

Rules: text stays text, and media become parts. Links are described and never fetched, because a server must not choose
the addresses that this process connects to. A part that its server addresses to the user alone says so in its metadata,
and models do not get it. Resources keep their names.

Source: "Tools" and "Resources" in the Model Context Protocol specification.
"""

from collections.abc import Sequence

from ag_ui.core import ContentPart, TextPart
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic_core import to_json

from agui_container.ports import ToolContent, ToolError
from agui_container.ports.tool import AUDIENCE
from agui_core.content import media_part

UNKNOWN = "application/octet-stream"

NO_REASON = "the tool gave no reason."


def content_of(result: CallToolResult) -> ToolContent:
    """Structured content counts only in place of other content. Raises ``ToolError`` with the server's text."""
    parts = [_part(block) for block in result.content]
    has_text = any(isinstance(part, TextPart) for part in parts)
    if result.structured_content is not None and (not parts or (result.is_error and not has_text)):
        parts.append(TextPart(text=to_json(result.structured_content, inf_nan_mode="null").decode()))
    if result.is_error:
        raise ToolError(_text(parts).strip() or NO_REASON)
    is_plain = all(isinstance(part, TextPart) and part.metadata is None for part in parts)
    return _text(parts) if is_plain else parts


def _text(parts: Sequence[ContentPart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _part(block: ContentBlock) -> ContentPart:
    part = _unmarked_part(block)
    audience = block.annotations.audience if block.annotations else None
    if audience == ["user"]:
        return part.model_copy(update={"metadata": {**(part.metadata or {}), AUDIENCE: audience}})
    return part


def _unmarked_part(block: ContentBlock) -> ContentPart:
    match block:
        case TextContent(text=text):
            return TextPart(text=text)
        case ImageContent() | AudioContent():
            return media_part(block.data, block.mime_type)
        case EmbeddedResource():
            return _file(block.resource)
        case ResourceLink():
            description = f": {block.description}" if block.description else ""
            return TextPart(text=f"[{block.title or block.name}]({block.uri}){description}")


def _file(contents: TextResourceContents | BlobResourceContents) -> ContentPart:
    name = str(contents.uri).rstrip("/").rpartition("/")[2]
    if isinstance(contents, TextResourceContents):
        return TextPart(text=f"{contents.uri}\n{contents.text}")
    return media_part(contents.blob, contents.mime_type or UNKNOWN, name)
