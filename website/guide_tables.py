"""Tables of the guides, for pages that repeat their sentences beside figures of the code."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def guide_table(guide: str, first_column: str) -> list[list[str]]:
    """Return the rows of the first table of a guide whose head begins with ``first_column``. Links lead one up."""
    lines = iter((DOCS / f"{guide}.md").read_text(encoding="utf-8").splitlines())
    next(line for line in lines if line.startswith(f"| {first_column} |"))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([LINK.sub(r"](../\1", cell.strip()) for cell in line.strip("|").split(" | ")])
    return rows
