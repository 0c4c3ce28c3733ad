"""Links of the documents lead somewhere, and the navigation of the site has every guide."""

import re

import pytest

from tests.docs.documents import GUIDES, LINKED, ROOT
from tests.docs.markdown import Document

TARGET = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(document: Document) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", LINKED, ids=lambda document: document.name)
def test_links_of_a_document_lead_to_files_and_headings(document: Document) -> None:
    known = {each.name: anchors(each) for each in LINKED}
    broken = []
    for target, fragment in TARGET.findall(document.prose):
        if ":" in target:
            continue
        path = (ROOT / document.name).parent / target if target else ROOT / document.name
        name = str(path.resolve().relative_to(ROOT))
        if not path.exists() or (fragment and fragment not in known.get(name, {fragment})):
            broken.append((target, fragment))
    assert broken == []


def test_every_guide_is_in_the_navigation_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(re.findall(r": ([\w-]+)\.md$", nav, re.MULTILINE)) == sorted(GUIDES)
