"""The guide of the platform: its commands run as they are pasted, and its tables are those of the code."""

import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agui_container.cli.platform import check as check_command
from agui_container.cli.platform import platform as platform_command
from agui_container.platform.errors import PlatformError
from agui_container.platform.rules import RULES, RuleFindings
from bench.peer_rules import OURS, PEERS, with_marks
from tests.docs.documents import GUIDES, ROOT
from tests.docs.markdown import Block, Document, code
from tests.platform.doubles import CONTAINER
from tests.platform.process import platform_process

GUIDE = GUIDES["platform"]
USUAL_ADDRESS = "http://127.0.0.1:8100"
AGUI = f"{sys.executable} -m agui_container"


def blocks(mark: str) -> list[Block]:
    """The blocks that are marked so."""
    return [block for block in GUIDE.blocks if mark in block.marks]


async def run(block: Block, address: str) -> str:
    """The output of a block, at the address of a platform."""
    program = ["bash", "-euo", "pipefail"] if block.language == "bash" else [sys.executable]
    text = block.text.replace(USUAL_ADDRESS, address).replace("agui platform", f"{AGUI} platform")
    process = await asyncio.create_subprocess_exec(*program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    output, _ = await process.communicate(text.encode())
    assert process.returncode == 0
    return output.decode()


async def test_the_first_steps_run_as_pasted() -> None:
    start, program, _, next_error = blocks("needs-platform")
    assert start.text.strip() == "agui platform"
    with platform_process() as address:
        printed = (await run(program, address)).split()
        assert (printed[0], printed[-1]) == ("RUN_STARTED", "RUN_FINISHED")
        assert "RATE_LIMIT_EXCEEDED" in await run(next_error, address)


async def test_the_call_without_a_signature_runs_as_pasted() -> None:
    [call] = blocks("needs-platform-without-signatures")
    with platform_process("--auth", "none") as address:
        assert "RUN_FINISHED" in await run(call, address)


def test_the_check_runs_as_pasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, _, check, _ = blocks("needs-platform")
    (tmp_path / "server.py").write_text(CONTAINER.read_text())
    words = shlex.split(check.text.replace("python server.py", f"{sys.executable} server.py exits"))
    done = subprocess.run([*AGUI.split(), *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "start.in-time" in done.stdout) == (1, True)


def test_the_marks_of_the_table_are_those_of_findings_and_its_versions_those_of_the_lock() -> None:
    rows = GUIDE.table(" | ".join(("rule", "what it says", OURS, *PEERS)))
    ours, *theirs = (RuleFindings() for _ in ("ours", *PEERS))
    for rule in RULES:
        ours.hold(rule)
        theirs[-1].break_rule(rule, "seen")
    made = Document("made", with_marks(GUIDE.text, [ours, *theirs]))
    assert made.table("rule") == [[*row[:2], "✓", *"\N{EN DASH}" * 2, "✗"] for row in rows]
    lock = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "requirements-bench.lock").read_text(), re.MULTILINE))
    for name, shown in (("bedrock-agentcore",) * 2, ("ag-ui-strands",) * 2, ("pydantic-ai-slim", "Pydantic AI")):
        assert f"{shown} {lock[name]}" in GUIDE.text.replace("\n", " ")


def test_the_tables_of_rules_and_errors_are_those_of_the_code() -> None:
    assert [code(row[0]) for row in GUIDE.table("rule")] == [*RULES]
    rows = [
        (error.name, error.value.exception, str(error.value.status), str(error.value.rest_status))
        for error in PlatformError
    ]
    assert [tuple(map(code, row)) for row in GUIDE.table("code")] == rows


def test_every_option_of_the_guide_is_an_option_of_the_command() -> None:
    named = set(re.findall(r"`(?:agui platform (?:check )?)?(--[a-z-]+)", GUIDE.prose))
    known = {option for command in (platform_command, check_command) for each in command.params for option in each.opts}
    assert named - known == set()
    assert {option for option in known if option.startswith("--")} - {"--host", "--port"} <= named
