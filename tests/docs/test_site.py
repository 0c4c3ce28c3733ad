"""The site has every page in its navigation and no broken link, is built, and works without a server."""

import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from urllib.parse import quote_plus, urlsplit

import pytest
import yaml
from playwright.async_api import Page, async_playwright, expect

from agui_container.agents.assistant.goals import goal_tracker
from agui_container.ports import goals
from tests.console.driver import chromium
from tests.docs.documents import GUIDES, ROOT
from tests.docs.markdown import FENCE, code
from website.__main__ import write
from website.pages import pages

ZENSICAL = ROOT / ".venv" / "site" / "bin" / "zensical"
SENT = re.compile(r'(?:name=|^[A-Z_]+ = |StoreWarning\(\s*)"([a-z]+\.[a-z_]+)"', re.MULTILINE)
MODULES = [path for path in (ROOT / "app").rglob("*.py") if not {"deploy", "platform", "telemetry"} & {*path.parts}]
LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]+))?\)")
QUESTIONS = {
    "which role JSON": "agentcore",
    "how to chat with the deployed runtime": "agentcore",
    "does @requires_access_token work": "from-agentcore-sdk",
    "CDK or Terraform": "deploy",
    "Cognito and sockets": "cognito",
    "per-user MCP tokens": "tools",
    "approvals without PostgreSQL": "approvals",
    "VPC and cold start": "vpc",
    "roll-out and rollback": "rollout",
    "which alarms": "alarms",
}
"""Questions as a new user types them into the site's search, and the page that answers."""
VISIBLE = 3
"""Results that a reader sees without scrolling."""


@cache
def texts() -> dict[str, str]:
    """Return the text of every page, by its name."""
    return dict(pages())


def prose(page: str) -> str:
    """Return the text of a page without its code blocks."""
    return FENCE.sub("", texts()[page])


def entries(nav: object) -> Iterator[str]:
    """Iterate over the pages that a part of the navigation names."""
    if isinstance(nav, str):
        yield nav
    for entry in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from entries(entry)


def anchors(page: str) -> set[str]:
    """Return the fragments of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as ``make docs`` does, and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    write(folder / "build" / "pages")
    (folder / "mkdocs.yml").write_bytes((ROOT / "mkdocs.yml").read_bytes())
    command = [str(ZENSICAL), "build", "--strict", "--config-file", "mkdocs.yml"]
    built = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert built.returncode == 0, built.stdout
    return folder / "build" / "site"


@asynccontextmanager
async def offline_page(file: Path) -> AsyncIterator[Page]:
    """Open a file of the site in Chromium, without a network, and its search."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await (await browser.new_context(offline=True)).new_page()
        await page.goto(file.as_uri())
        await page.keyboard.press("Control+k")
        yield page
        await browser.close()


async def found(page: Page, question: str) -> list[str]:
    """Return the names of the pages that the site's search finds, best first."""
    await page.get_by_role("combobox", name="Search").fill(question)
    results = page.locator(f"[role=option][href*='h={quote_plus(question)}']")
    await expect(results.first).to_be_visible()
    addresses = [await result.get_attribute("href") or "" for result in await results.all()]
    return [PurePosixPath(urlsplit(address).path).name for address in addresses]


def test_every_page_is_in_the_navigation_once_and_every_entry_is_a_page() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2])
    assert sorted(entries(nav)) == sorted(texts())


def test_links_of_every_page_lead_to_pages_and_headings() -> None:
    broken = []
    for page in texts():
        folder = PurePosixPath(page).parent
        for target, fragment in LINK.findall(prose(page)):
            name = os.path.normpath(folder / target) if target else page
            if not (name in texts() or name.startswith("images/")) or (fragment and fragment not in anchors(name)):
                broken.append((page, target, fragment))
    assert broken == []


def test_code_blocks_of_the_site_have_no_marks_of_the_tests() -> None:
    openings = {opening for text in texts().values() for opening in re.findall(r"^```\w+ .*$", text, re.MULTILINE)}
    assert [opening for opening in openings if not re.fullmatch(r'```\w+ title="[\w.]+"', opening)] == []


def test_every_page_of_the_site_is_built_without_a_fault(site: Path) -> None:
    assert {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")} >= set(texts())
    assert "base64UrlBearerAuthorization" in (site / "search.js").read_text(encoding="utf-8")


def test_no_page_of_the_site_loads_anything_from_elsewhere(site: Path) -> None:
    remote = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    assert {page.name: tag for page in site.rglob("*.html") for tag in remote.findall(page.read_text())} == {}


@pytest.mark.parametrize("page", ["index.html", "reference/errors.html"])
async def test_the_search_finds_a_page_without_a_server_and_without_a_network(site: Path, page: str) -> None:
    async with offline_page(site / page) as opened:
        assert (await found(opened, "role JSON"))[0] == "agentcore.html"


async def test_questions_of_a_new_user_are_answered_by_a_page_that_the_search_shows_first(site: Path) -> None:
    async with offline_page(site / "index.html") as opened:
        shown = {question: (await found(opened, question))[:VISIBLE] for question in QUESTIONS}
    assert {question: pages for question, pages in shown.items() if f"{QUESTIONS[question]}.html" not in pages} == {}


def test_the_table_of_custom_events_has_every_name_that_the_server_sends() -> None:
    named = {code(name) for name, *_ in GUIDES["custom-events"].table("name")}
    sent = {name for path in MODULES for name in SENT.findall(path.read_text()) if not name.startswith("agui.")}
    assert named == sent | {goals.DECLARED, goals.ACHIEVED, goals.FAILED, goal_tracker.PROMPTED}
