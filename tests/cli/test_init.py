"""``agui init``: projects of each framework that run and whose tests pass at once."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agui_container.cli.command_line import main
from agui_container.cli.init import FRAMEWORKS
from tests.docs.documents import ROOT
from tests.frameworks.conftest import STRANDS_PYTHON
from tests.requirements import requirement
from tests.server.test_embedding import WAIT
from tests.sockets.process import ServerProcess

PROJECT = {
    *(".dockerignore", ".gitignore", "Dockerfile", "README.md", "agent.py", "agui.schema.json", "agui.toml"),
    *("requirements.txt", "test_agent.py"),
}
RUN_TESTS = """
import test_agent
test_agent.test_a_tool_runs_once_it_is_approved()
test_agent.test_a_tool_that_is_denied_does_not_run()
"""
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin")
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def python_of(framework: str) -> Path:
    """Return the Python that has the framework."""
    return STRANDS_PYTHON if framework == "strands" else Path(sys.executable)


def make(folder: Path, *options: str) -> Path:
    assert main(["init", str(folder), *options]) == 0
    return folder


def run(python: Path, folder: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    env = clean | {"PYTHONPATH": f"{ROOT / 'app'}:{folder}"}
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=WAIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@requirement("init.runs")
@each_framework
def test_the_tests_of_a_new_project_pass(framework: str, tmp_path: Path) -> None:
    python = python_of(framework)
    folder = make(tmp_path / "my-agent", "--framework", framework, "--tool", "publish", "--tool", "send_mail")
    if framework == "strands":  # its environment has no pytest
        run(python, folder, "-c", RUN_TESTS)
    else:
        assert "2 passed" in run(python, folder, *PYTEST)


@requirement("init.runs")
@each_framework
def test_a_new_project_is_served_and_asks_before_its_tool_runs(framework: str, tmp_path: Path) -> None:
    python = python_of(framework)
    folder = make(tmp_path / "my-agent", "--framework", framework)
    command = ("env", "-u", "AGUI_AGENT", str(python), "-m", "agui_container", "serve")
    with ServerProcess(command, folder) as server:
        message = {"id": "m1", "role": "user", "content": 'call publish {"text": "hello"}'}
        body = {"threadId": "t1", "runId": "r1", "messages": [message]}
        answer = httpx.post(server.invocations, json=body, timeout=WAIT).text
    (last,) = re.findall(r'^data: (\{"type":"RUN_FINISHED".*)$', answer, re.MULTILINE)
    assert len(json.loads(last)["outcome"]["interrupts"]) == 1
    assert "Done: hello" not in answer


@requirement("init.files")
@each_framework
def test_a_project_has_all_that_it_needs(framework: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path / "my-agent", "--framework", framework)
    shown = capsys.readouterr().out
    names = {path.name for path in folder.iterdir()}
    assert names - {"offline_model.py"} == PROJECT
    assert all(name in shown for name in names)
    assert shown.endswith("  agui dev\n")
    settings = tomllib.loads((folder / "agui.toml").read_text())
    Draft202012Validator(json.loads((folder / "agui.schema.json").read_text())).validate(settings)
    assert (folder / "agui.toml").read_text().startswith("#:schema ./agui.schema.json\n")
    extras = "all" if framework == "plain" else f"all,{framework}"
    assert (folder / "requirements.txt").read_text().endswith(f"agui-container[{extras}]\n")
    readme = (folder / "README.md").read_text()
    assert f"A real model: {FRAMEWORKS[framework].model}\n" in readme
    assert "$" not in "".join(path.read_text() for path in folder.iterdir() if path.name != "agui.schema.json")


@requirement("init.files")
@each_framework
def test_the_code_of_a_project_is_formatted_and_has_no_faults(framework: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "my-agent", "--framework", framework, "--tool", "publish", "--tool", "send_mail")
    for command in (["format", "--check"], ["check"]):
        run(Path(sys.executable), folder, "-m", "ruff", *command, "--isolated", "--no-cache", "--line-length", "120")


@requirement("init.files")
def test_the_image_of_a_project_serves_it_as_agentcore_asks(tmp_path: Path) -> None:
    lines = (make(tmp_path / "my-agent") / "Dockerfile").read_text().splitlines()
    assert len(lines) < 12
    assert 'CMD ["agui", "serve"]' in lines
    assert "ENV AGUI_CONSOLE=off AGUI_ERROR_STATUS=stream AGUI_LOG_FORMAT=json AGUI_ROBOTO=off" in lines
    assert "USER 1000" in lines


@requirement("init.files")
def test_a_folder_with_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path} is not empty. Name a new folder.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert main(["init", str(tmp_path / "mine")]) == 2
    assert capsys.readouterr().err == f"cannot write {tmp_path}/mine: File exists\n"


@requirement("init.files")
def test_the_current_folder_may_be_named_and_odd_names_break_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / 'my "agent" \\ $name'
    odd.mkdir()
    monkeypatch.chdir(odd)
    make(Path())
    compile((odd / "agent.py").read_text(), "agent.py", "exec")
    assert (odd / "README.md").read_text().startswith("# my agent  name\n")


@pytest.mark.parametrize("name", ["tool", "agent", "interrupt", "Agent", "print"])
def test_a_tool_that_would_hide_what_the_code_needs_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "new"), "--tool", name]) == 2
    assert f"'{name}' has another meaning in the code of a project." in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["my-tool", "class", "", "1st", "a b"])
def test_a_tool_that_python_cannot_name_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "new"), "--tool", name]) == 2
    assert f"'{name}' is not the name of a Python function." in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
