"""The commands of the guides for beginners run as they are pasted, in a new folder, with ports that are free."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import PYTHONPATH
from tests.docs.documents import GUIDES, PROJECT
from tests.platform.process import NO_CREDENTIALS
from tests.sockets.process import START_SECONDS, ServerProcess, environment

START = [block.text for block in GUIDES["start"].blocks if PROJECT in block.marks]
AGENTCORE = [block.text for block in GUIDES["agentcore"].blocks if PROJECT in block.marks]
BASH = ("bash", "-euo", "pipefail", "-c")
ALLOWED = 'call publish {"text": "hello"}\ny\n'


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Variables of a machine that has the command ``agui``, and neither a browser nor an account."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "agui").write_text(f'#!/bin/sh\nexec {sys.executable} -m agui_container "$@"\n')
    (folder / "agui").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": PYTHONPATH, "XDG_STATE_HOME": str(tmp_path), "BROWSER": "true"}
    return {**own, **NO_CREDENTIALS}


def run(script: str, folder: Path, variables: dict[str, str], typed: str = "") -> str:
    """Return the output of a block that ends by itself."""
    done = subprocess.run(
        [*BASH, script],
        cwd=folder,
        env=environment(variables),
        input=typed,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def serving(script: str, folder: Path, variables: dict[str, str]) -> ServerProcess:
    """Run a block whose last command serves, in the place of the shell so that it gets signals."""
    *before, last = script.splitlines()
    return ServerProcess((*BASH, "\n".join([*before, f"exec {last}"])), folder, **variables)


def test_a_project_is_made_and_served_and_its_tool_runs_once_it_is_allowed(
    variables: dict[str, str], tmp_path: Path
) -> None:
    serve, chat, doctor = START
    with serving(serve, tmp_path, variables) as server:
        assert "Done: hello" in run(f"{chat.strip()} localhost:{server.port}", tmp_path, variables, ALLOWED)
    assert "settings" in run(doctor, tmp_path / "my-agent", variables)


def test_a_project_is_planned_for_agentcore_and_answers_behind_the_local_one(
    variables: dict[str, str], tmp_path: Path
) -> None:
    plan, serve, chat = AGENTCORE
    install, rest = plan.split("\n", 1)
    assert install.startswith("pip install ")
    assert "CreateAgentRuntime" in run(rest, tmp_path, variables)
    with serving(f"{serve.strip()} --port 0", tmp_path / "weather", variables) as server:
        here = chat.replace(":8100", f":{server.port}")
        assert "Done: hello" in run(here, tmp_path, variables, ALLOWED)
