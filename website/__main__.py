"""Write the pages of the site: ``python -m website FOLDER``."""

import shutil
import sys
from pathlib import Path

from website.pages import DOCS, pages

SCRIPTS = Path(__file__).parent / "scripts"
"""Scripts of the site that are not part of its theme, each with its license."""


def write(folder: Path) -> None:
    """Write all pages, in place of what the folder had."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in pages():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(DOCS / "images", folder / "images")
    shutil.copytree(SCRIPTS, folder / "scripts")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
