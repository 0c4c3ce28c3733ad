"""The size of an image from its header, and images that are too large for Bedrock."""

import base64
import struct
from collections.abc import Callable

import pytest
from ag_ui.core import DataSource, ImagePart

from agui_container.models.bedrock.media import MAX_PIXELS, MediaConverter
from agui_container.models.media import image_size

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
