"""Results of MCP tools become text or parts."""

import pytest
from ag_ui.core import AudioPart, DataSource, DocumentPart, ImagePart, TextPart
from mcp_types import CallToolResult

from agui_container.ports import ToolContent, ToolError
from agui_container.ports.tool import for_models
from agui_container.tools.mcp.content import content_of

TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "cGl4ZWxz", "mimeType": "image/png"}
FILE = {"type": "resource", "resource": {"uri": "file:///x/r.pdf", "blob": "JVBERg==", "mimeType": "application/pdf"}}
NOTE = {"type": "resource", "resource": {"uri": "file:///x/n.md", "text": "# Note"}}
LINK = {"type": "resource_link", "name": "report", "uri": "https://example.com/r", "description": "All of it"}
PIXELS = DataSource(value="cGl4ZWxz", mime_type="image/png")
PDF = DataSource(value="JVBERg==", mime_type="application/pdf")
FOR_USER = {"annotations": {"audience": ["user"]}}


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"content": [TEXT, TEXT]}, "a\na"),
        ({"content": []}, ""),
        ({"content": [], "structuredContent": {"a": 1}}, '{"a":1}'),
        ({"content": [TEXT], "structuredContent": {"a": 1}}, "a"),
        ({"content": [IMAGE]}, [ImagePart(source=PIXELS)]),
        (
            {"content": [{"type": "audio", "data": "c291bmQ=", "mimeType": "audio/wav"}, LINK]},
            [
                AudioPart(source=DataSource(value="c291bmQ=", mime_type="audio/wav")),
                TextPart(text="[report](https://example.com/r): All of it"),
            ],
        ),
        ({"content": [FILE]}, [DocumentPart(source=PDF, metadata={"filename": "r.pdf"})]),
        ({"content": [NOTE]}, "file:///x/n.md\n# Note"),
        (
            {"content": [TEXT, {**IMAGE, **FOR_USER}]},
            [TextPart(text="a"), ImagePart(source=PIXELS, metadata={"audience": ["user"]})],
        ),
        ({"content": [{**TEXT, "annotations": {"audience": ["user", "assistant"]}}]}, "a"),
        ({"content": [{**TEXT, **FOR_USER}]}, [TextPart(text="a", metadata={"audience": ["user"]})]),
    ],
)
def test_a_result_becomes_text_or_parts(result: dict[str, object], content: ToolContent) -> None:
    assert content_of(CallToolResult.model_validate(result)) == content


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"content": [{"type": "text", "text": "No such city."}]}, "No such city."),
        ({"content": [], "structuredContent": {"reason": "x"}}, '{"reason":"x"}'),
        ({"content": [IMAGE], "structuredContent": {"reason": "x"}}, '{"reason":"x"}'),
        ({"content": []}, "the tool gave no reason."),
    ],
)
def test_a_failure_has_the_servers_reason(result: dict[str, object], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        content_of(CallToolResult.model_validate({**result, "isError": True}))
    assert str(caught.value) == words


def test_a_part_for_the_user_alone_is_not_for_models() -> None:
    result = content_of(CallToolResult.model_validate({"content": [{**TEXT, **FOR_USER}, FILE]}))
    assert for_models(result) == result[1:]
