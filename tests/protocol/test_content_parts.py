"""Inline data of content parts: every shape becomes plain base64. URLs and unusable values stay as they are."""

import base64

import pytest

from agui_container.protocol.content_parts import migrate_parts
from tests.engine.doubles import Json

BYTES = bytes(range(256)) + b"\xfb\xff"
"""Bytes whose base64 has both symbols that differ between the alphabets."""

PLAIN = base64.b64encode(BYTES).decode()
LINES = base64.encodebytes(BYTES).decode()
FOR_URLS = base64.urlsafe_b64encode(BYTES).decode()
UNPADDED = FOR_URLS.rstrip("=")
PNG = "image/png"


def migrated(*parts: Json) -> list[Json]:
    messages: list[Json] = [{"content": list(parts)}]
    migrate_parts(messages, print)
    found: list[Json] = messages[0]["content"]
    return found


URL = f"data:{PNG};base64,{PLAIN}"
SHAPES: dict[str, Json] = {
    "a URL source": {"type": "image", "source": {"type": "url", "value": URL}},
    "a URL source with its type": {"type": "image", "source": {"type": "url", "value": URL, "mimeType": PNG}},
    "a data source with the prefix": {"type": "image", "source": {"type": "data", "value": URL, "mimeType": PNG}},
    "a data source without its type": {"type": "image", "source": {"type": "data", "value": URL}},
    "a binary part with a URL": {"type": "binary", "url": URL, "mimeType": PNG},
    "a binary part with the prefix": {"type": "binary", "data": URL, "mimeType": PNG},
    "a binary part without its type": {"type": "binary", "url": URL},
    "line breaks in a URL": {"type": "image", "source": {"type": "url", "value": f"DATA:{PNG};BASE64,{LINES}"}},
    "a URL for URLs": {"type": "image", "source": {"type": "url", "value": f"data:{PNG};base64,{UNPADDED}"}},
    "escapes in a URL": {
        "type": "image",
        "source": {"type": "url", "value": f"data:{PNG};base64,{PLAIN.replace('+', '%2B').replace('=', '%3d')}"},
    },
}


@pytest.mark.parametrize("mime_type", [PNG, "audio/wav", "video/mp4", "application/pdf"])
def test_a_binary_part_with_an_id_alone_is_the_handle_of_a_file(mime_type: str) -> None:
    kind = mime_type.partition("/")[0].replace("application", "document")
    source = {"type": "file", "value": "file-1", "mimeType": mime_type}
    assert migrated({"type": "binary", "id": "file-1", "mimeType": mime_type}) == [{"type": kind, "source": source}]


@pytest.mark.parametrize("part", SHAPES.values(), ids=SHAPES)
def test_a_data_url_is_data_in_every_shape(part: Json) -> None:
    assert migrated(part) == [{"type": "image", "source": {"type": "data", "value": PLAIN, "mimeType": PNG}}]


@pytest.mark.parametrize(
    ("url", "mime_type", "data"),
    [
        ("data:,a%20b", "text/plain", b"a b"),
        ("data:;charset=utf-8,%C3%A9", "text/plain;charset=utf-8", "é".encode()),
        ("data:text/csv,a,b", "text/csv", b"a,b"),
        ("data:text/plain;charset=utf-8;base64,aGk", "text/plain;charset=utf-8", b"hi"),
        ("data:;base64,aGk=", "text/plain", b"hi"),
    ],
)
def test_a_data_url_need_not_have_base64_nor_a_type(url: str, mime_type: str, data: bytes) -> None:
    source = {"type": "data", "value": base64.b64encode(data).decode(), "mimeType": mime_type}
    assert migrated({"type": "document", "source": {"type": "url", "value": url}}) == [
        {"type": "document", "source": source}
    ]
