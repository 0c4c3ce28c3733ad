"""Public names of the TypeScript client: the exports of ``index.ts``, with comments and signatures of the sources."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from website.tables import page

SOURCES = Path(__file__).parents[2] / "clients" / "typescript" / "src"
OPENING = (
    "The exports of the TypeScript client, from its sources. [TypeScript client](../typescript.md) shows them in use."
)
EXPORT = re.compile(r"export (?:type )?\{([^}]*)\} from \"\./([\w-]+)\.js\"")
COMMENT = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*\Z", re.DOTALL)
PRIVATE = re.compile(r"  (private|protected) ")


def typescript_client() -> str:
    """Return the page."""
    return page("TypeScript API", OPENING, *(section(name, module) for name, module in exported()))


def exported() -> Iterator[tuple[str, str]]:
    """Iterate over the exported names and the modules that define them."""
    for names, module in EXPORT.findall((SOURCES / "index.ts").read_text(encoding="utf-8")):
        for name in filter(None, (part.strip().removeprefix("type ") for part in names.split(","))):
            yield name, module


def section(name: str, module: str) -> str:
    """Return the section of one export.

    Raises:
        ValueError: the module has no such export.
    """
    source = (SOURCES / f"{module}.ts").read_text(encoding="utf-8")
    start = re.search(rf"^export (?:abstract )?(?:class|interface|type|const|function) {name}\b", source, re.MULTILINE)
    if start is None:
        raise ValueError(f"{module}.ts exports no {name}")
    comment = COMMENT.search(source[: start.start()])
    text = " ".join(re.sub(r"^\s*\* ?", "", comment[1], flags=re.MULTILINE).split()) if comment else ""
    return f"## {name}\n\n{text}\n\n```ts\n{declaration(source[start.start() :])}\n```"


def declaration(source: str) -> str:
    """Return a declaration without private members, and its methods without their bodies.

    The sources are formatted, so a declaration ends with the first line that closes at the left margin, and a member
    with the first line that closes at its own.
    """
    lines = source.splitlines()
    if not lines[0].endswith(("{", "[", "(", "=")):
        return lines[0]
    is_class = bool(re.match(r"export (?:abstract )?class ", lines[0]))
    return "\n".join([lines[0], *(class_lines if is_class else plain_lines)(lines[1:])])


def plain_lines(lines: Sequence[str]) -> Iterator[str]:
    """Iterate over the lines up to the end of a declaration that is no class."""
    for line in lines:
        yield line
        if line.startswith(("}", "]", ")")):
            return


def class_lines(lines: Sequence[str]) -> Iterator[str]:
    """Iterate over the public members of a class, each with its comment."""
    comment: list[str] = []
    is_inside = False
    for line in lines:
        if is_inside:
            is_inside = line != "  }"
        elif line.startswith("}"):
            yield line
            return
        elif re.match(r"  (?:/\*| \*)", line):
            comment.append(line)
        elif line.strip() and (line.startswith("    ") or not line.startswith("  ")):
            yield line
        elif line.strip():
            is_inside = line.endswith(") {") or bool(re.search(r"\): [\w<>[\] |]+ \{$", line))
            if not PRIVATE.match(line):
                yield from (*comment, f"{line.removesuffix(' {')};" if is_inside else line)
            comment = []
