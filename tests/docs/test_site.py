"""The site of the documentation is built without a fault, and its search finds the section that answers a question."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.documents import ROOT
from tests.machine import find_program

pytestmark = pytest.mark.packages

SEARCH = Path(__file__).with_name("search.mjs")
HITS = 3
"""Hits that a reader looks at."""

ADAPTERS = "frameworks.html#agno-adk-openai-agents-llamaindex-langroid-ag2-claude"
ANSWERS: Mapping[str, str] = {
    "ADK": ADAPTERS,
    "OpenAI Agents": ADAPTERS,
    "crewAI": "frameworks.html#crewai",
    "LangGraph": "frameworks.html#langgraph",
    "Pydantic AI": "frameworks.html#pydantic-ai",
    "Strands": "frameworks.html#strands",
    "Next.js": "clients.html#nextjs",
    "Lambda": "behind-agentcore.html#on-aws-lambda",
    "upload a file": "models.html#files",
    "tokens per user": "operations.html#tokens-per-user",
    "own HTTP route": "agents.html#a-mounted-application-and-your-own-http-routes",
    "cost of a session": "behind-agentcore.html#the-cost-of-a-session",
    "why did my run fail": "troubleshooting.html#why-did-my-run-fail",
    "threads in PostgreSQL": "operations.html#what-survives-threads-in-memory-sqlite-postgresql",
    "approval": "approvals.html",
    "nginx": "proxies.html#nginx",
    "a user's own MCP token": "tools.html#mcp-tokens-of-each-user",
    "test my agent": "agents.html#how-do-i-test-my-agent",
    "deploy with Terraform": "deploy.html#deploy-with-terraform",
    "reload in the middle of a run": "threads.html#reload-in-the-middle-of-a-run",
    "several replicas": "operations.html#several-replicas",
}
"""Sections by the question of a new user that each one answers."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for source in ("app", "clients"):
        (folder / source).symlink_to(ROOT / source)
    path = os.pathsep.join(map(str, (ROOT, ROOT / "app", ROOT / "clients" / "python" / "src")))
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "build" / "site"


def test_pages_have_what_is_generated_from_the_code(site: Path) -> None:
    assert "MODEL_THROTTLED" in (site / "http-api.html").read_text(encoding="utf-8")
    assert "--dry-run" in (site / "command-line.html").read_text(encoding="utf-8")
    assert "run_agent" in (site / "python.html").read_text(encoding="utf-8")


def test_the_search_of_the_site_finds_the_section_that_answers_a_question(site: Path) -> None:
    node = find_program("node")
    found = subprocess.run(
        [node, SEARCH, site, *ANSWERS], capture_output=True, encoding="utf-8", check=True
    ).stdout.splitlines()
    hits = {question: json.loads(line)[:HITS] for question, line in zip(ANSWERS, found, strict=True)}
    assert {question: places for question, places in hits.items() if ANSWERS[question] not in places} == {}
