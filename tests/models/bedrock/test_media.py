"""Images and documents go to Bedrock within its limits; everything else is dropped with a warning."""

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import (
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    FileSource,
    ImagePart,
    TextPart,
    UrlSource,
    UserMessage,
    VideoPart,
)

from agui_container.models.bedrock import BedrockOptions
from agui_container.models.bedrock.media import (
    DOCUMENT_FORMATS,
    MAX_DOCUMENT_BYTES,
    MAX_IMAGE_BYTES,
    MediaConverter,
    document_name,
    limit_media,
)
from agui_container.models.bedrock.request import request_of
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
    return MediaConverter().blocks(parts)


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
def test_unusable_media_is_dropped_with_a_warning_and_the_rest_is_sent(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert blocks(TextPart(text="look"), DROPPED[name], image())[0] == {"text": "look"}
    assert len(blocks(TextPart(text="look"), DROPPED[name], image())) == 2
    assert "dropped" in caplog.records[0].getMessage()
    assert "169.254" not in caplog.text


def test_media_of_the_largest_allowed_size_is_sent() -> None:
    data = PNG + bytes(MAX_IMAGE_BYTES - len(PNG))
    assert len(blocks(image(data), document(data=bytes(MAX_DOCUMENT_BYTES)))) == 2


def test_a_message_has_twenty_images_and_five_documents_at_most(caplog: pytest.LogCaptureFixture) -> None:
    parts: Sequence[ContentPart] = [*[image()] * 21, *[document()] * 6, TextPart(text="look")]
    sent = [next(iter(block)) for block in content(*parts)]
    assert sent == [*["image"] * 20, *["document"] * 5, "text"]
    assert len(caplog.records) == 2


def test_limits_count_what_is_in_tool_results() -> None:
    picture = {"image": {"format": "png", "source": {"bytes": PNG}}}
    results = [{"toolResult": {"toolUseId": str(n), "content": [picture] * 15}} for n in range(3)]
    kept = limit_media(results)
    assert [len(block["toolResult"]["content"]) for block in kept] == [15, 5, 1]
    assert kept[2]["toolResult"]["content"] == [{"text": ""}]


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
