"""The folder that an image is built from: its files, their digest, the Dockerfile, and the wheel of this server.

Rule: the digest is the tag of the image, so an image is built once for the same files, on whatever machine.
"""

import hashlib
import io
import posixpath
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from pathspec import PathSpec, Pattern

from agui_container.aws.deploy.requirements import REQUIREMENTS, check_requirements, installations, is_required
from agui_container.aws.deploy.wheels import SERVER, find_wheel

NEVER = (".git", ".venv", ".agui", "**/__pycache__", "**/.env", "**/.env.*", "**/.envrc")
"""Patterns of files that are in no image, besides those of ``.dockerignore``: secrets, and what no server reads."""

EMITTED = "infrastructure"
"""Folder of the template of CloudFormation. It is in no image if it has ``TEMPLATE``."""

TEMPLATE = "template.json"

DOCKERFILE = """FROM public.ecr.aws/docker/library/python:3.12-slim-bookworm
WORKDIR /app
COPY . .
RUN pip install --no-cache-dir {packages}
ENV AGUI_CONSOLE=off AGUI_ERROR_STATUS=stream AGUI_LOG_FORMAT=json AGUI_ROBOTO=off
USER 1000
EXPOSE 8080
CMD ["agui", "serve"]
"""
"""For a folder without one."""

AWS_SDK = re.compile(rb"^\s*(?:from|import)\s+bedrock_agentcore\b", re.MULTILINE)


class SourceFolder(Struct, frozen=True):
    """A folder with an agent. ``dockerfile`` is relative to it, and need not be there."""

    path: Path
    dockerfile: str = "Dockerfile"

    @property
    def dockerfile_text(self) -> str:
        return self._dockerfile or DOCKERFILE.format(packages=" ".join(self._packages()))

    def check_requirements(self) -> None:
        names = {name.as_posix() for name in self.files()}
        check_requirements(self._requirements, REQUIREMENTS, names.__contains__)
        check_requirements(installations(self._dockerfile), self.dockerfile, names.__contains__)

    @property
    def _dockerfile(self) -> str:
        return self._text_of(self.dockerfile)

    @property
    def _requirements(self) -> str:
        return self._text_of(REQUIREMENTS)

    def _text_of(self, name: str) -> str:
        file = self.path / name
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    @property
    def _needs_wheel(self) -> bool:
        return not self._dockerfile and not is_required(SERVER, self._requirements)

    def _packages(self) -> Iterator[str]:
        if self._requirements:
            yield f"-r {REQUIREMENTS}"
        if self._needs_wheel:
            yield f"'./{find_wheel(SERVER).path}[all]'"
        code = (self.path / name for name in self.files() if name.suffix == ".py")
        is_named = is_required("bedrock-agentcore", self._requirements)
        if not is_named and any(AWS_SDK.search(file.read_bytes()) for file in code):
            yield "bedrock-agentcore"

    def files(self) -> Iterator[Path]:
        """Yield the files of the image's context, relative to the folder, in order."""
        yield from sorted(self._walk(self.path, self._ignores()))

    def _walk(self, folder: Path, ignores: Sequence[Pattern]) -> Iterator[Path]:
        has_exceptions = any(not pattern.include for pattern in ignores)
        for path in folder.iterdir():
            name = path.relative_to(self.path)
            hidden = _is_ignored(name, ignores)
            if path.is_dir() and not path.is_symlink() and (not hidden or has_exceptions):
                yield from self._walk(path, ignores)
            elif path.is_file() and not hidden:
                yield name

    def _ignores(self) -> Sequence[Pattern]:
        file = self.path / ".dockerignore"
        text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
        never = (*NEVER, EMITTED) if (self.path / EMITTED / TEMPLATE).is_file() else NEVER
        return PathSpec.from_lines("gitignore", [*_git_patterns(text), *_git_patterns("\n".join(never))]).patterns

    def digest(self) -> str:
        found = hashlib.sha256()
        for name, mode, content in self._context():
            found.update(f"\0{name}\0{mode}\0{len(content)}\0".encode() + content)
        return found.hexdigest()[:16]

    def tarred(self) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, mode, content in self._context():
                entry = tarfile.TarInfo(name)
                entry.mode, entry.size = mode, len(content)
                archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()

    def _context(self) -> Iterator[tuple[str, int, bytes]]:
        made = {"Dockerfile": self.dockerfile_text.encode()}
        if self._needs_wheel:
            wheel = find_wheel(SERVER)
            made[wheel.path] = wheel.content
        for name in self.files():
            if name.as_posix() not in made:
                yield name.as_posix(), self._mode(name), (self.path / name).read_bytes()
        for path, content in made.items():
            yield path, 0o644, content

    def _mode(self, name: Path) -> int:
        return 0o755 if (self.path / name).stat().st_mode & 0o100 else 0o644


def _is_ignored(name: Path, ignores: Sequence[Pattern]) -> bool:
    # The last pattern that fits the file, or a folder above it, decides.
    paths = [each.as_posix() for each in (name, *name.parents[:-1])]
    for pattern in reversed(ignores):
        if any(pattern.match_file(path) for path in paths):
            return bool(pattern.include)
    return False


def _git_patterns(text: str) -> Iterator[str]:
    """Yield the patterns of a ``.dockerignore`` as Git writes them.

    Docker has each pattern begin at the folder, trims it, and cleans it of ``.``, ``..`` and repeated slashes. Only a
    ``#`` at the beginning of a line is a comment.
    """
    for line in text.splitlines():
        pattern = line.strip()
        sign = "!" if pattern.startswith("!") else ""
        cleaned = posixpath.normpath(pattern.removeprefix("!").strip() or ".").lstrip("/")
        if not line.startswith("#") and cleaned not in ("", "."):
            yield f"{sign}/{cleaned}"
