"""The guides for plain Node, followed from an empty folder: what they install, save and run."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.driver import PageServer, serve_page
from tests.docs.documents import GUIDES, ROOT
from tests.docs.markdown import Block, Document

CLIENT = Path("clients/typescript")
README = Document.read(ROOT / CLIENT / "README.md", ROOT)
SCRIPT = "chat.mjs"
SECONDS = 600.0
NPM = {"npm_config_prefer_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false"}
"""Packages that npm has in its cache are not asked for again."""


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    """The built-in assistant on the offline model."""
    with serve_page() as server:
        yield server


def run(commands: str, folder: Path) -> str:
    """Run commands as they are pasted, and return what they print."""
    shell = ["bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(
        shell, cwd=folder, env={**os.environ, **NPM}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


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
    assert run(commands.text, tmp_path).splitlines()[-1].startswith(output.text.partition("…")[0])


def test_the_client_of_this_project_talks_from_an_empty_folder(tmp_path: Path, server: PageServer) -> None:
    install = next(block for block in README.blocks if "npm pack" in block.text)
    examples = [block for block in README.blocks if block.language == "js"][:2]
    checkout, folder = tmp_path / "agui-container", tmp_path / "my-app"
    built = shutil.ignore_patterns("node_modules", "dist", "build")
    shutil.copytree(ROOT / CLIENT, checkout / CLIENT, ignore=built)
    folder.mkdir()
    run(install.text, folder)
    for example in examples:
        save(example, folder, server)
        shown = README.blocks[README.blocks.index(example) + 1].text
        assert run(f"node {SCRIPT}", folder) == shown
