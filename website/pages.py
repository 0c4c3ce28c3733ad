"""Pages of the site: the documents of the repository, as a site can show them.

A document is written for a reader of the repository. On the site the marks behind the language of a code block go, a
link to another document leads to its page, and a link to a file without a page becomes the name of the file.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from website.reference import REFERENCE

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ELSEWHERE: Mapping[str, str] = {
    "README.md": "index.md",
    "SECURITY.md": "threat-model.md",
    "CHANGELOG.md": "changelog.md",
    "bench/NOTES.md": "laboratory-notes.md",
}
"""Documents outside of ``docs``, and the names of their pages."""

DECISIONS = "decisions.md"
"""The page of all decision records."""

FENCE = re.compile(r"^(```\w*)([^\n]*)\n(.*?^```)$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"file=(\S+)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]+)?\)")
IMAGE = re.compile(r"(!\[[^\]]*\]\()(?:docs/)?(images/)")
HEADING = re.compile(r"^#", re.MULTILINE)


def documents() -> Mapping[str, str]:
    """Return the page of each document, by its path in the repository. All decision records are on one page."""
    guides = {f"docs/{path.name}": path.name for path in sorted(DOCS.glob("*.md"))}
    records = {f"docs/decisions/{path.name}": DECISIONS for path in sorted((DOCS / "decisions").glob("*.md"))}
    return {**guides, **records, **ELSEWHERE}


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the names of all pages and their text."""
    targets = documents()
    records = [path for path, page in targets.items() if page == DECISIONS]
    for path, page in targets.items():
        if page != DECISIONS:
            yield page, shown(path, targets)
    yield DECISIONS, "\n\n".join(["# Decisions", *(inner(shown(path, targets)) for path in records)])
    for page, build in REFERENCE.items():
        yield f"reference/{page}", build()


def shown(path: str, targets: Mapping[str, str]) -> str:
    """Return the text of a document on the site."""
    text, at = (ROOT / path).read_text(encoding="utf-8"), 0
    parts = []
    for fence in FENCE.finditer(text):
        parts += [prose(text[at : fence.start()], path, targets), opening(fence[1], fence[2]), "\n", fence[3]]
        at = fence.end()
    return "".join([*parts, prose(text[at:], path, targets)])


def opening(fence: str, marks: str) -> str:
    """Return the first line of a code block: its language, and the name of its file as a title."""
    name = FILE.search(marks)
    return f'{fence} title="{name[1]}"' if name else fence


def prose(text: str, path: str, targets: Mapping[str, str]) -> str:
    """Return text between code blocks with the links of the site."""

    def link(found: re.Match[str]) -> str:
        label, target, fragment = found[1], found[2], found[3] or ""
        if "://" in target or (not target and targets[path] != DECISIONS):
            return found[0]
        file = resolved(path, target) if target else path
        if file not in targets:
            return label if label.strip("`").endswith(target.rpartition("/")[2]) else f"{label} (`{file}`)"
        if targets[file] == DECISIONS:
            fragment = fragment or f"#{record_anchor(file)}"
        return f"[{label}]({targets[file]}{fragment})"

    return LINK.sub(link, IMAGE.sub(r"\1\2", text))


def resolved(path: str, target: str) -> str:
    """Return the path of a link's target in the repository."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def record_anchor(path: str) -> str:
    """Return the anchor of a decision record on the page of all records."""
    title = (ROOT / path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def inner(text: str) -> str:
    """Return a document as a section of another page: each heading is one level deeper."""
    return HEADING.sub("##", text)
