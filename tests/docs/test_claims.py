"""Claims of docs/operations.md and SECURITY.md are shown by tests, which the documents name.

Rule: each section of the guide has a row of tests, and so has each row of the table of what survives.
"""

import re

import pytest

from tests.docs.documents import DOCUMENTS, GUIDES, SECURITY
from tests.test_manifest import functions

NAME = re.compile(r"`(test_\w+)`")
OPERATIONS = GUIDES["operations"]
TESTS = "## Tests behind this page"


def rows_of_tests() -> dict[str, list[str]]:
    """The tests of each row of the last section."""
    return {section: NAME.findall(names) for section, names in OPERATIONS.table("section", TESTS)}


def test_every_section_for_operators_names_its_tests() -> None:
    sections = re.findall(r"^## (.+)$", OPERATIONS.text, re.MULTILINE)
    without = {TESTS.removeprefix("## "), "What survives", "Kill it yourself"}
    named = rows_of_tests()
    assert [section for section in sections if section not in without and not named.get(section)] == []


def test_every_row_of_what_survives_has_its_tests() -> None:
    rows = [row[0] for row in OPERATIONS.table("what happens", "## What survives")]
    named = rows_of_tests()
    assert rows
    assert [row for row in rows if not named.get(f"What survives: {row}")] == []


@pytest.mark.parametrize("section", ["## What is protected", "## Limits per caller"])
def test_every_claim_about_security_names_its_tests(section: str) -> None:
    rows = SECURITY.table("claim", section)
    assert rows
    assert [claim for claim, names in rows if not NAME.findall(names)] == []


def test_every_test_that_a_document_names_is_there() -> None:
    known = {function.name for _, function in functions()}
    named = {(document.name, name) for document in DOCUMENTS for name in NAME.findall(document.prose)}
    assert sorted(each for each in named if each[1] not in known) == []
