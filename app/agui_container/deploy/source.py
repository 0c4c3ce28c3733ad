"""The folder that an image is built from: its files, their digest, and the Dockerfile.

Rule: the digest is the tag of the image, so an image is built once for the same files, on whatever machine.
"""

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from agui_container import __version__

NEVER = (".git", ".venv", ".agui", "**/__pycache__", "**/.env", "**/.env.*", "**/.envrc")
"""Patterns of files that are in no image, besides those of ``.dockerignore``: secrets, and what no server reads."""

EMITTED = "infrastructure"
"""Folder of infrastructure code. It is in no image if it has one of ``EMITTED_FILES``."""

EMITTED_FILES = ("template.json", "main.tf.json")

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

EPOCH = (1980, 1, 1, 0, 0, 0)


class SourceFolder(Struct, frozen=True):
    """A folder with an agent.

    Attributes:
        path: of the folder.
        dockerfile: its Dockerfile, relative to it. It need not be there.
    """

    path: Path
    dockerfile: str = "Dockerfile"

    @property
    def dockerfile_text(self) -> str:
        """The Dockerfile, or the one for a folder without."""
        file = self.path / self.dockerfile
        if file.is_file():
            return file.read_text(encoding="utf-8")
        return DOCKERFILE.format(packages=" ".join(self._packages()))

    def _packages(self) -> Iterator[str]:
        """Yield what pip installs: the requirements, the server, and AWS's SDK if the code imports it."""
        file = self.path / "requirements.txt"
        required = file.read_text(encoding="utf-8") if file.is_file() else ""
        if required:
            yield "-r requirements.txt"
        if not is_required("agui-container", required):
            wheels = [f"'./{wheel.name}[all]'" for wheel in sorted(self.path.glob("agui_container-*.whl"))]
            yield from wheels or [f"'agui-container[all]=={__version__}'"]
        code = (self.path / name for name in self.files() if name.suffix == ".py")
        if not is_required("bedrock-agentcore", required) and any(AWS_SDK.search(file.read_bytes()) for file in code):
            yield "bedrock-agentcore"

    def files(self) -> Iterator[Path]:
        """Yield the files of the image's context, relative to the folder, in order."""
        ignores = self.ignores()
        yield from sorted(self._walk(self.path, ignores))

    def _walk(self, folder: Path, ignores: list[tuple[re.Pattern[str], bool]]) -> Iterator[Path]:
        has_exceptions = any(not hides for _, hides in ignores)
        for path in folder.iterdir():
            name = path.relative_to(self.path)
            hidden = is_ignored(name.as_posix(), ignores)
            if path.is_dir() and not path.is_symlink() and (not hidden or has_exceptions):
                yield from self._walk(path, ignores)
            elif path.is_file() and not hidden:
                yield name

    def ignores(self) -> list[tuple[re.Pattern[str], bool]]:
        """Return the patterns of ``.dockerignore``, and True for each that hides files. The last that fits decides."""
        file = self.path / ".dockerignore"
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        has_code = any((self.path / EMITTED / name).is_file() for name in EMITTED_FILES)
        never = (*NEVER, EMITTED) if has_code else NEVER
        return [(to_regex(each.removeprefix("!")), not each.startswith("!")) for each in (*patterns, *never)]

    def digest(self) -> str:
        """Return a digest of the files, their modes and the Dockerfile."""
        found = hashlib.sha256(self.dockerfile_text.encode())
        for name in self.files():
            content = (self.path / name).read_bytes()
            found.update(f"\0{name.as_posix()}\0{self._mode(name)}\0{len(content)}\0".encode() + content)
        return found.hexdigest()[:16]

    def zipped(self) -> bytes:
        """Return the context as a zip."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, mode, content in self._context():
                entry = zipfile.ZipInfo(name, EPOCH)
                entry.external_attr = mode << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        return buffer.getvalue()

    def tarred(self) -> bytes:
        """Return the context as a tar."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, mode, content in self._context():
                entry = tarfile.TarInfo(name)
                entry.mode, entry.size = mode, len(content)
                archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()

    def _context(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield name, mode and content of each file, with the Dockerfile as ``Dockerfile``."""
        for name in self.files():
            if name.as_posix() != "Dockerfile":
                yield name.as_posix(), self._mode(name), (self.path / name).read_bytes()
        yield "Dockerfile", 0o644, self.dockerfile_text.encode()

    def _mode(self, name: Path) -> int:
        return 0o755 if (self.path / name).stat().st_mode & 0o100 else 0o644


def is_required(package: str, required: str) -> bool:
    """Return True if the lines of a ``requirements.txt`` name a package."""
    name = package.replace("-", "[-_.]")
    lines = re.sub(r"(^|\s)#.*", "", required, flags=re.MULTILINE)
    return re.search(rf"(?<![\w.-]){name}(?![-_]?[a-z])", lines, re.IGNORECASE) is not None


def is_ignored(name: str, ignores: list[tuple[re.Pattern[str], bool]]) -> bool:
    """Return True if a file is not in the context."""
    return next((hides for pattern, hides in reversed(ignores) if pattern.match(name)), False)


def to_regex(pattern: str) -> re.Pattern[str]:
    """Return a pattern of ``.dockerignore`` as a regular expression. It also fits all that is below."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    escaped = re.sub(
        r"\*\*/|\*\*|\*|\?|[^*?]+", lambda found: parts.get(found[0], re.escape(found[0])), pattern.strip("/")
    )
    return re.compile(rf"{escaped}(?:/|$)")
