"""What a function returns as the content of a tool message: text, or content parts.

Rule: parts go to the client and the model unchanged; whatever is neither text nor parts becomes JSON text.
"""

from ag_ui.core import AudioPart, ContentPart, DocumentPart, ImagePart, TextPart, VideoPart
from pydantic_core import to_json

from app.ports import ToolContent

PARTS = (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart)


def content_of(result: object) -> ToolContent:
    """The content for a result. A list that has parts in it may hold strings besides; they become text parts."""
    if isinstance(result, str):
        return result
    if isinstance(result, PARTS):
        return [result]
    if isinstance(result, list | tuple) and any(isinstance(item, PARTS) for item in result):
        return [_part(item) for item in result]
    return to_json(result, inf_nan_mode="strings").decode()


def _part(item: object) -> ContentPart:
    return item if isinstance(item, PARTS) else TextPart(text=item if isinstance(item, str) else str(content_of(item)))
