"""Files of the page in memory: bytes, compressed bytes, and the headers they are served with.

Rule: only files of the ``static`` folder are served, by exact name, so that no path can lead out of it.
"""

import html
import mimetypes
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).with_name("static")
COMPRESSED = ".gz"

IMMUTABLE = "public, max-age=31536000, immutable"
"""Value of Cache-Control for chunks, whose names contain a hash of the content."""

REVALIDATE = "no-cache"
"""Value of Cache-Control for all other files. Browsers ask every time, and get 304 for an unchanged file."""

TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    """One file, with a gzip copy where the build made one."""

    name: str
    body: bytes
    compressed: bytes | None = None

    @cached_property
    def etag(self) -> str:
        """Strong validator of the uncompressed bytes."""
        return f'"{sha256(self.body).hexdigest()[:32]}"'

    @property
    def media_type(self) -> str:
        """Content type without a charset."""
        suffix = Path(self.name).suffix
        return TYPES.get(suffix) or mimetypes.guess_type(self.name)[0] or "text/plain"

    @property
    def cache_control(self) -> str:
        """Value of the header Cache-Control."""
        return IMMUTABLE if self.name.startswith("chunks/") else REVALIDATE


def load_assets(title: str, accent: str, folder: Path = STATIC) -> dict[str, Asset]:
    """Read every file, by its path in the folder.

    Args:
        title: shown as the page's title and as the product's name.
        accent: colour as ``#rrggbb``.
        folder: what the build made.
    """
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    assets = {
        name: Asset(name, path.read_bytes(), _read_compressed(files.get(name + COMPRESSED)))
        for name, path in files.items()
        if not name.endswith(COMPRESSED)
    }
    index = assets["index.html"].body.decode()
    assets["index.html"] = Asset("index.html", _with_settings(index, title, accent).encode())
    return assets


def _read_compressed(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()


def _with_settings(page: str, title: str, accent: str) -> str:
    """Put the settings into data attributes, because the page may hold no inline script."""
    escaped = html.escape(title, quote=True)
    attributes = f'data-title="{escaped}" data-accent="{html.escape(accent, quote=True)}"'
    return page.replace('data-title="" data-accent=""', attributes).replace(
        "<title>Chat</title>", f"<title>{escaped}</title>"
    )
