"""The guide of the platform: its commands run as they are pasted."""

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.aws.platform.doubles import CONTAINER
from tests.aws.platform.process import platform_process
from tests.docs.documents import GUIDES
from tests.docs.markdown import Block

pytestmark = [pytest.mark.wire, pytest.mark.packages]

GUIDE = GUIDES["platform"]
USUAL_ADDRESS = "http://127.0.0.1:8100"
AGUI = f"{sys.executable} -m agui_container"


def blocks(mark: str) -> list[Block]:
    return [block for block in GUIDE.blocks if mark in block.marks]


async def run(block: Block, address: str) -> str:
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
