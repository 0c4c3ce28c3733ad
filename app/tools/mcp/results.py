"""What an MCP tool gives, as the content of a tool message.

Rule: text stays text and media become parts. Links are described, never fetched: that would be the server's choice of
what we connect to.
"""

from collections.abc import Sequence

from ag_ui.core import AudioPart, ContentPart, DataSource, DocumentPart, ImagePart, TextPart, VideoPart
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

from app.ports import ToolContent, ToolError

MEDIA: dict[str, type[ImagePart] | type[AudioPart] | type[VideoPart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}
UNKNOWN = "application/octet-stream"


def content_of(result: CallToolResult) -> ToolContent:
    """The content of a result; the structured form only where the server gives no other.

    Raises:
        ToolError: with the server's words, if the tool says that it failed.
    """
    parts = [_part(block) for block in result.content]
    if result.is_error:
        raise ToolError(_text(parts) or "the tool gave no reason.")
    if not parts and result.structured_content is not None:
        return to_json(result.structured_content).decode()
    return _text(parts) if all(isinstance(part, TextPart) for part in parts) else parts


def _text(parts: Sequence[ContentPart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _part(block: ContentBlock) -> ContentPart:
    match block:
        case TextContent(text=text):
            return TextPart(text=text)
        case ImageContent() | AudioContent():
            return _media(block.data, block.mime_type)
        case EmbeddedResource():
            return _file(block.resource)
        case ResourceLink():
            about = f": {block.description}" if block.description else ""
            return TextPart(text=f"[{block.title or block.name}]({block.uri}){about}")


def _file(contents: TextResourceContents | BlobResourceContents) -> ContentPart:
    if isinstance(contents, TextResourceContents):
        return TextPart(text=contents.text)
    return _media(contents.blob, contents.mime_type or UNKNOWN)


def _media(data: str, mime_type: str) -> ContentPart:
    source = DataSource(value=data, mime_type=mime_type)
    return MEDIA.get(mime_type.partition("/")[0], DocumentPart)(source=source)
