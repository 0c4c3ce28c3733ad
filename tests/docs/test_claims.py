"""What the guide for operators claims is shown by tests, and it names them.

Rule: each paragraph and each bullet of it names a test, but for the introduction and what only leads on, which ends in
a colon; each row of what survives has a bullet of its own.
"""

import re

from tests.docs.documents import DOCUMENTS, GUIDES
from tests.docs.markdown import Document
from tests.test_manifest import functions

NAME = re.compile(r"`(test_\w+)`")
OPERATIONS = GUIDES["operations"]


def claims(document: Document) -> list[str]:
    """Its paragraphs and bullets, each on one line, without those that only lead on."""
    _, *blocks = re.split(r"\n\s*\n|\n(?=- )", document.prose)
    said = [" ".join(block.split()) for block in blocks]
    return [each for each in said if each and not each.startswith(("#", "|")) and not each.endswith(":")]


def test_every_claim_to_operators_names_a_test() -> None:
    introduction, *rest = claims(OPERATIONS)
    assert introduction.startswith("How to run")
    assert len(rest) > 20
    assert [claim for claim in rest if not NAME.search(claim)] == []


def test_every_row_of_what_survives_has_its_tests() -> None:
    rows = [row[0] for row in OPERATIONS.table("what happens", "## What survives")]
    section = OPERATIONS.prose.partition("## What survives")[2].partition("\n## ")[0]
    heads = re.findall(r"^- \*\*(.+?)\.\*\*", section, re.MULTILINE)
    assert [f"{head[0].lower()}{head[1:]}" for head in heads] == rows


def test_every_test_that_a_document_names_is_there() -> None:
    known = {function.name for _, function in functions()}
    named = {(document.name, name) for document in DOCUMENTS for name in NAME.findall(document.prose)}
    assert sorted(each for each in named if each[1] not in known) == []


def test_a_claim_without_a_test_is_found() -> None:
    text = "# Title\n\nWhat it is.\n\n- One (`test_one`).\n- Two,\n  that goes on.\n\nSo:\n\n| a |\n|---|\n\nThree."
    assert claims(Document("x.md", text)) == ["What it is.", "- One (`test_one`).", "- Two, that goes on.", "Three."]
