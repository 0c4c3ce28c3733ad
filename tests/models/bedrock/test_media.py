"""Images and documents go to Bedrock within its limits; everything else is dropped with a warning."""

import base64
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    FileSource,
    FunctionCall,
    ImagePart,
    TextPart,
    ToolCall,
    ToolMessage,
    UrlSource,
    UserMessage,
    VideoPart,
)

from agui_container.models.bedrock import BedrockOptions
from agui_container.models.bedrock.media import (
    DOCUMENT_FORMATS,
    MAX_DOCUMENT_BYTES,
    MAX_IMAGE_BYTES,
    MAX_PIXELS,
    MediaConverter,
    document_name,
    limit_media,
)
from agui_container.models.bedrock.request import request_of
from agui_container.models.media import image_size
from tests.models.bedrock.doubles import ANSWER, MODEL, BedrockModels, collect_deltas, prompt
from tests.models.bedrock.rules import broken_rules, service_model
from tests.models.bedrock.server import BedrockServer

PNG, JPEG, GIF, WEBP = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\nWEBP"


def source(data: bytes, mime: str = "image/png") -> DataSource:
    return DataSource(value=base64.b64encode(data).decode(), mime_type=mime)


def image(data: bytes = PNG, mime: str = "image/png") -> ImagePart:
    return ImagePart(source=source(data, mime))


def document(name: object = None, mime: str = "application/pdf", data: bytes = b"%PDF") -> DocumentPart:
    return DocumentPart(source=source(data, mime), metadata=name)


def blocks(*parts: ContentPart) -> list[dict[str, Any]]:
    return MediaConverter().blocks("u", parts)


def note(part: ContentPart) -> str:
    return f"[{part.type} left out: this model cannot be given it]"


def content(*parts: ContentPart) -> list[dict[str, Any]]:
    """The user's message as it is sent; nothing that Bedrock would refuse."""
    body: Any = request_of(MODEL, BedrockOptions(), prompt(UserMessage(id="u", content=list(parts)))).body
    assert broken_rules(body) == []
    found: list[dict[str, Any]] = body["messages"][0]["content"]
    return found


@pytest.mark.parametrize(("data", "kind"), [(PNG, "png"), (JPEG, "jpeg"), (GIF, "gif"), (WEBP, "webp")])
def test_the_format_of_an_image_is_that_of_its_bytes(data: bytes, kind: str) -> None:
    assert blocks(image(data, "image/png")) == [{"image": {"format": kind, "source": {"bytes": data}}}]


def test_every_format_of_the_service_can_be_sent() -> None:
    shapes = service_model()
    assert {*DOCUMENT_FORMATS.values()} == {*shapes.shape_for("DocumentFormat").enum}
    kinds = {blocks(image(data))[0]["image"]["format"] for data in (PNG, JPEG, GIF, WEBP)}
    assert kinds == {*shapes.shape_for("ImageFormat").enum}


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        *DOCUMENT_FORMATS.items(),
        ("Text/Plain; charset=utf-8", "txt"),
        ("text/x-rust", "txt"),
        ("application/json", "txt"),
    ],
)
def test_the_format_of_a_document_is_that_of_its_label(mime: str, kind: str) -> None:
    (block,) = blocks(document(mime=mime))
    assert block == {"document": {"format": kind, "name": "document", "source": {"bytes": b"%PDF"}}}


DROPPED: dict[str, ContentPart] = {
    "a url": ImagePart(source=UrlSource(value="http://169.254.169.254/latest", mime_type="image/png")),
    "a file handle": DocumentPart(source=FileSource(value="file-1", provider="openai")),
    "audio": AudioPart(source=source(b"x", "audio/wav")),
    "video": VideoPart(source=source(b"x", "video/mp4")),
    "not base64": ImagePart(source=DataSource(value="data:image/png;base64,AAAA", mime_type="image/png")),
    "not ascii": ImagePart(source=DataSource(value="ü", mime_type="image/png")),
    "nothing": ImagePart(source=DataSource(value="", mime_type="image/png")),
    "not an image": image(b"<svg/>", "image/svg+xml"),
    "a large image": image(PNG + bytes(MAX_IMAGE_BYTES - len(PNG) + 1)),
    "a large document": document(data=bytes(MAX_DOCUMENT_BYTES + 1)),
    "an unknown document": document(mime="application/zip"),
}


@pytest.mark.parametrize("name", DROPPED)
def test_unusable_media_is_dropped_with_a_note_and_a_warning_and_the_rest_is_sent(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    part = DROPPED[name]
    assert blocks(TextPart(text="look"), part, image())[:2] == [{"text": "look"}, {"text": note(part)}]
    assert len(blocks(TextPart(text="look"), part, image())) == 3
    assert "dropped" in caplog.records[0].getMessage()
    assert "169.254" not in caplog.text


def test_media_of_the_largest_allowed_size_is_sent() -> None:
    data = PNG + bytes(MAX_IMAGE_BYTES - len(PNG))
    assert len(blocks(image(data), document(data=bytes(MAX_DOCUMENT_BYTES)))) == 2


def test_a_message_has_twenty_images_and_five_documents_at_most(caplog: pytest.LogCaptureFixture) -> None:
    parts: Sequence[ContentPart] = [*[image()] * 21, *[document()] * 6, TextPart(text="look")]
    sent = [next(iter(block)) for block in content(*parts)]
    assert sent == [*["image"] * 20, "text", *["document"] * 5, "text", "text"]
    assert len(caplog.records) == 2


def test_limits_count_what_is_in_tool_results() -> None:
    converter = MediaConverter()
    contents = [converter.blocks(str(n), [image()] * 15) for n in range(3)]
    results = [{"toolResult": {"toolUseId": str(n), "content": content}} for n, content in enumerate(contents)]
    kept = limit_media(results, converter)
    pictures = [[block for block in each["toolResult"]["content"] if "image" in block] for each in kept]
    assert [len(each) for each in pictures] == [15, 5, 0]
    assert kept[2]["toolResult"]["content"] == [{"text": note(image())}] * 15
    assert [(report.message_id, report.index) for report in converter.dropped.reports] == [
        *(("1", n) for n in range(5, 15)),
        *(("2", n) for n in range(15)),
    ]


def test_a_document_gets_a_text_if_it_has_none() -> None:
    assert [next(iter(block)) for block in content(document())] == ["document", "text"]
    assert [next(iter(block)) for block in content(TextPart(text="a"), document())] == ["text", "document"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report pdf"),
        ("Q3 (final) [v2]-ok", "Q3 (final) [v2]-ok"),
        ("  a \t\n b__c  ", "a b c"),
        ("../../etc/passwd", "etc passwd"),
        ("日本", "document"),
        ("", "document"),
        ("x" * 300, "x" * 188),
    ],
)
def test_names_of_documents_are_made_fit(given: str, name: str) -> None:
    assert document_name(given) == name


def test_names_of_documents_are_unique_in_a_request() -> None:
    parts = [document({"filename": "a.pdf"}), document({"name": "a pdf"}), document(7), document({"filename": 7})]
    names = [block["document"]["name"] for block in blocks(*parts)]
    assert names == ["a pdf", "a pdf (2)", "document", "document (2)"]


async def test_bytes_arrive_as_they_are(wire: BedrockServer, bedrock: BedrockModels) -> None:
    wire.will(ANSWER)
    message = UserMessage(id="u", content=[TextPart(text="look"), image(), document()])
    await collect_deltas(bedrock().stream(prompt(message)))
    _, picture, paper = wire.requests[0]["messages"][0]["content"]
    assert base64.b64decode(picture["image"]["source"]["bytes"]) == PNG
    assert base64.b64decode(paper["document"]["source"]["bytes"]) == b"%PDF"


def test_media_that_a_failed_result_cannot_have_is_told() -> None:
    result = ToolMessage(id="t", tool_call_id="x", content=[TextPart(text="half"), image()], error="it broke")
    call = ToolCall(id="x", function=FunctionCall(name="draw", arguments="{}"))
    request = request_of(MODEL, BedrockOptions(), prompt("hi", AssistantMessage(id="a", tool_calls=[call]), result))
    body: Any = request.body
    (block,) = body["messages"][-1]["content"]
    assert block["toolResult"]["content"] == [{"text": "half"}, {"text": note(image())}, {"text": "it broke"}]
    assert [report.reason for report in request.dropped] == ["only text is sent in a failed result"]


# --- sizes of pictures ------------------------------------------------------------------------------------------------


Make = Callable[[int, int], bytes]


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\0\0\0"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def webp(form: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + form + struct.pack("<I", len(body)) + body


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height | 0x8000))


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14))


def extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def jpeg(width: int, height: int) -> bytes:
    before = b"\xff\xe0" + struct.pack(">H", 6) + b"JFIF" + b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    return b"\xff\xd8" + before + b"\xff\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9


PICTURES = [("png", png), ("gif", gif), ("webp", lossy), ("webp", lossless), ("webp", extended), ("jpeg", jpeg)]


@pytest.mark.parametrize(("kind", "make"), PICTURES)
def test_the_size_is_read_from_the_header(kind: str, make: Make) -> None:
    assert image_size(kind, make(640, 8001)) == (640, 8001)


@pytest.mark.parametrize(("kind", "make"), PICTURES)
def test_a_header_that_is_cut_off_tells_nothing_and_harms_nothing(kind: str, make: Make) -> None:
    whole = make(640, 480)
    assert {image_size(kind, whole[:at]) for at in range(len(whole))} <= {None, (640, 480)}


@pytest.mark.parametrize(("side", "kept"), [(MAX_PIXELS, 1), (MAX_PIXELS + 1, 0)])
@pytest.mark.parametrize(("kind", "make"), PICTURES)
def test_a_picture_that_is_too_large_is_dropped(kind: str, make: Make, side: int, kept: int) -> None:
    data = base64.b64encode(make(10, side)).decode()
    part = ImagePart(source=DataSource(value=data, mime_type=f"image/{kind}"))
    assert sum("image" in block for block in MediaConverter().blocks("u", [part])) == kept
