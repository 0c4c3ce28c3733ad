"""The folder that an image is built from: its files, and their digest.

Rule: the digest is the tag of the image, so an image is built once for the same files, on whatever machine.
"""

import hashlib
import io
import os
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from pathspec import PathSpec

from agui_container.aws.deploy.requirements import REQUIREMENTS, find_faults

NEVER = ("/.git", "/.venv", "/.agui", "__pycache__", ".env", ".env.*", ".envrc")
"""Patterns of Git for files that are in no image, whatever ``.dockerignore`` has: secrets, what no server reads."""


class SourceFolder(Struct, frozen=True):
    """A folder with an agent. ``dockerfile`` is relative to it."""

    path: Path
    dockerfile: str = "Dockerfile"

    @property
    def has_dockerfile(self) -> bool:
        return (self.path / self.dockerfile).is_file()

    def find_faults(self) -> Iterator[str]:
        """Yield why the image could not install this server, as sentences. A Dockerfile may copy wheels anywhere."""
        names = {file.name for file in self.files()}
        texts = {file: self._text_of(file) for file in (REQUIREMENTS, self.dockerfile)}
        return find_faults(texts, lambda path: Path(path).name in names)

    def files(self) -> list[Path]:
        """Return the files of the image's context, relative to the folder, in order."""
        return sorted(self._walk())

    def _walk(self) -> Iterator[Path]:
        ignored = PathSpec.from_lines("gitignore", _git_patterns(self._text_of(".dockerignore")))
        never = PathSpec.from_lines("gitignore", NEVER)
        has_exceptions = any(pattern.include is False for pattern in ignored.patterns)
        skipped = never if has_exceptions else ignored + never
        for folder, folders, names in os.walk(self.path):
            here = Path(folder).relative_to(self.path)
            folders[:] = [each for each in folders if not skipped.match_file(here / each)]
            for name in (here / each for each in names):
                if (self.path / name).is_file() and not (ignored + never).match_file(name):
                    yield name

    def digest(self) -> str:
        return hashlib.sha256(self.tarred()).hexdigest()[:16]

    def tarred(self) -> bytes:
        """Return the context as an archive, which is the same for the same files."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, mode, content in self._context():
                entry = tarfile.TarInfo(name)
                entry.mode, entry.size = mode, len(content)
                archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()

    def _context(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield the files, and the Dockerfile under its usual name, because Docker gets no other one."""
        for name in self.files():
            if name.as_posix() != "Dockerfile":
                yield name.as_posix(), self._mode(name), (self.path / name).read_bytes()
        yield "Dockerfile", 0o644, (self.path / self.dockerfile).read_bytes()

    def _text_of(self, name: str) -> str:
        file = self.path / name
        return file.read_text(encoding="utf-8-sig") if file.is_file() else ""

    def _mode(self, name: Path) -> int:
        return 0o755 if (self.path / name).stat().st_mode & 0o100 else 0o644


def _git_patterns(text: str) -> Iterator[str]:
    """Yield the patterns of a ``.dockerignore`` as Git writes them.

    Docker has each pattern begin at the folder, trims it, and cleans it of ``.``, ``..`` and repeated slashes. What
    fits a folder fits all that is in it. Only a ``#`` at the beginning of a line is a comment.
    """
    for line in text.splitlines():
        pattern = line.strip()
        sign = "!" if pattern.startswith("!") else ""
        cleaned = posixpath.normpath(pattern.removeprefix("!").strip() or ".").lstrip("/")
        if not line.startswith("#") and cleaned not in ("", "."):
            yield f"{sign}/{cleaned}"
            yield f"{sign}/{cleaned}/**"
