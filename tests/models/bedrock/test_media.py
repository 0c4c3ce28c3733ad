"""Images and documents go to Bedrock within its limits; everything else is dropped with a warning."""

import base64
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ag_ui import core as ag

from agui_container.models.bedrock import BedrockOptions
from agui_container.models.bedrock.media import (
    DOCUMENT_FORMATS,
    MAX_DOCUMENT_BYTES,
    MAX_IMAGE_BYTES,
    MAX_PIXELS,
    MediaConverter,
    document_name,
)
from agui_container.models.bedrock.request import request_of
from agui_container.models.media import image_size
from tests.models.bedrock.doubles import MODEL, prompt
from tests.models.bedrock.rules import broken_rules

PNG, JPEG, GIF, WEBP = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\nWEBP"


def source(data: bytes, mime: str = "image/png") -> ag.DataSource:
    return ag.DataSource(value=base64.b64encode(data).decode(), mime_type=mime)


def image(data: bytes = PNG, mime: str = "image/png") -> ag.ImagePart:
    return ag.ImagePart(source=source(data, mime))


def document(name: object = None, mime: str = "application/pdf", data: bytes = b"%PDF") -> ag.DocumentPart:
    return ag.DocumentPart(source=source(data, mime), metadata=name)


def blocks(*parts: ag.ContentPart) -> list[dict[str, Any]]:
    return MediaConverter().blocks("u", parts)


def note(part: ag.ContentPart) -> str:
    return f"[{part.type} left out: this model cannot be given it]"


def content(*parts: ag.ContentPart) -> list[dict[str, Any]]:
    """The user's message as it is sent; nothing that Bedrock would refuse."""
    body: Any = request_of(MODEL, BedrockOptions(), prompt(ag.UserMessage(id="u", content=list(parts)))).body
    assert broken_rules(body) == []
    found: list[dict[str, Any]] = body["messages"][0]["content"]
    return found


@pytest.mark.parametrize(("data", "kind"), [(PNG, "png"), (JPEG, "jpeg"), (GIF, "gif"), (WEBP, "webp")])
def test_the_format_of_an_image_is_that_of_its_bytes(data: bytes, kind: str) -> None:
    assert blocks(image(data, "image/png")) == [{"image": {"format": kind, "source": {"bytes": data}}}]


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


DROPPED: dict[str, ag.ContentPart] = {
    "a url": ag.ImagePart(source=ag.UrlSource(value="http://169.254.169.254/latest", mime_type="image/png")),
    "a file handle": ag.DocumentPart(source=ag.FileSource(value="file-1", provider="openai")),
    "audio": ag.AudioPart(source=source(b"x", "audio/wav")),
    "not base64": ag.ImagePart(source=ag.DataSource(value="data:image/png;base64,AAAA", mime_type="image/png")),
    "nothing": ag.ImagePart(source=ag.DataSource(value="", mime_type="image/png")),
    "not an image": image(b"<svg/>", "image/svg+xml"),
    "a large image": image(PNG + bytes(MAX_IMAGE_BYTES - len(PNG) + 1)),
    "a large document": document(data=bytes(MAX_DOCUMENT_BYTES + 1)),
}


@pytest.mark.parametrize("name", DROPPED)
def test_unusable_media_is_dropped_with_a_note_and_a_warning_and_the_rest_is_sent(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    part = DROPPED[name]
    assert blocks(ag.TextPart(text="look"), part, image())[:2] == [{"text": "look"}, {"text": note(part)}]
    assert len(blocks(ag.TextPart(text="look"), part, image())) == 3
    assert "dropped" in caplog.records[0].getMessage()
    assert "169.254" not in caplog.text


def test_a_message_has_twenty_images_and_five_documents_at_most(caplog: pytest.LogCaptureFixture) -> None:
    parts: Sequence[ag.ContentPart] = [*[image()] * 21, *[document()] * 6, ag.TextPart(text="look")]
    sent = [next(iter(block)) for block in content(*parts)]
    assert sent == [*["image"] * 20, "text", *["document"] * 5, "text", "text"]
    assert len(caplog.records) == 2


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


def test_media_that_a_failed_result_cannot_have_is_told() -> None:
    result = ag.ToolMessage(id="t", tool_call_id="x", content=[ag.TextPart(text="half"), image()], error="it broke")
    call = ag.ToolCall(id="x", function=ag.FunctionCall(name="draw", arguments="{}"))
    request = request_of(MODEL, BedrockOptions(), prompt("hi", ag.AssistantMessage(id="a", tool_calls=[call]), result))
    body: Any = request.body
    (block,) = body["messages"][-1]["content"]
    assert block["toolResult"]["content"] == [{"text": "half"}, {"text": note(image())}]
    assert [report.reason for report in request.dropped] == ["only text is sent in a failed result"]


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
    part = ag.ImagePart(source=ag.DataSource(value=data, mime_type=f"image/{kind}"))
    assert sum("image" in block for block in MediaConverter().blocks("u", [part])) == kept
