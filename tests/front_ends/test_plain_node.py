"""The guides for plain Node, followed from an empty folder: what they install, save and run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import GUIDES, ROOT
from tests.docs.markdown import Block, Document
from tests.front_ends.driver import CLIENT, check_out, paste
from tests.web.console.driver import PageServer, serve_page

pytestmark = pytest.mark.other_language

README = Document.read(ROOT / CLIENT / "README.md", ROOT)
SCRIPT = "chat.mjs"


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with serve_page() as server:
        yield server


def save(block: Block, folder: Path, server: PageServer) -> None:
    """Save a script of a guide. The server of the test has another port than that of a reader."""
    address = server.url.removeprefix("http://").rstrip("/")
    (folder / SCRIPT).write_text(block.text.replace("localhost:8080", address))


def test_the_official_client_talks_from_an_empty_folder(tmp_path: Path, server: PageServer) -> None:
    blocks = GUIDES["clients"].blocks
    at = next(at for at, block in enumerate(blocks) if block.language == "js")
    script, output, commands = blocks[at : at + 3]
    assert f"node {SCRIPT}" in commands.text
    save(script, tmp_path, server)
    assert paste(commands.text, tmp_path).splitlines()[-1].startswith(output.text.partition("…")[0])


def test_the_client_of_this_project_talks_from_an_empty_folder(tmp_path: Path, server: PageServer) -> None:
    install = next(block for block in README.blocks if "npm pack" in block.text)
    examples = [block for block in README.blocks if block.language == "js"][:2]
    check_out(tmp_path)
    folder = tmp_path / "my-app"
    folder.mkdir()
    paste(install.text, folder)
    for example in examples:
        save(example, folder, server)
        shown = README.blocks[README.blocks.index(example) + 1].text
        assert paste(f"node {SCRIPT}", folder) == shown
