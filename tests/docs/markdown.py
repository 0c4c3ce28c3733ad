"""As much of Markdown as the documents use: fenced blocks, tables and code spans."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    file: str
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def file_name(self) -> str | None:
        return next((mark.removeprefix("file=") for mark in self.marks if mark.startswith("file=")), None)


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    text: str

    @classmethod
    def read(cls, path: Path, root: Path) -> "Document":
        return cls(str(path.relative_to(root)), path.read_text(encoding="utf-8"))

    @property
    def blocks(self) -> list[Block]:
        return list(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        for found in FENCE.finditer(self.text):
            language, *marks = found["info"].split() or [""]
            line = self.text.count("\n", 0, found.start()) + 1
            yield Block(self.name, line, language, tuple(marks), found["text"])

    @property
    def prose(self) -> str:
        return FENCE.sub("", self.text)

    @property
    def spans(self) -> list[str]:
        return SPAN.findall(self.prose)

    def table(self, first_column: str, after: str = "") -> list[list[str]]:
        lines = iter(self.prose[self.prose.index(after) :].splitlines())
        for line in lines:
            if " ".join(line.split()).startswith(f"| {first_column} |"):
                break
        else:
            raise AssertionError(f"{self.name} has no table of {first_column!r}")
        next(lines)
        rows = []
        for line in lines:
            if not line.startswith("|"):
                break
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        return rows


def code(cell: str) -> str:
    found = SPAN.fullmatch(cell)
    return found[1] if found else cell
