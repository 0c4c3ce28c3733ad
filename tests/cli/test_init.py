"""``agui init``: projects of each framework that run and whose tests pass, some of them with a scripted model."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agui_container.cli.command_line import main
from agui_container.cli.init import CREWAI_REFUSED, FRAMEWORKS
from agui_container.cli.wheels import Wheel
from tests.agents.frameworks import table
from tests.agents.frameworks.model_server import model_server
from tests.docs.documents import ROOT
from tests.server.sockets.process import ServerProcess
from tests.server.test_embedding import WAIT

PROJECT = {
    *(".dockerignore", ".gitignore", "Dockerfile", "README.md", "agent.py", "agui.schema.json", "agui.toml"),
    *("requirements.txt", "test_agent.py", "wheels"),
}
pytestmark = pytest.mark.usefixtures("stand_in_wheels")

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin")
OTHERS = [pytest.param(name, marks=pytest.mark.packages) for name in FRAMEWORKS if name != "plain"]
each_framework = pytest.mark.parametrize("framework", ["plain", *OTHERS])
# Langroid's environment lacks packages that Langroid asks for: locks/frameworks.lock.
each_whole_framework = pytest.mark.parametrize(
    "framework", ["plain", *(it for it in OTHERS if it.values != ("langroid",))]
)
each_text = pytest.mark.parametrize("framework", FRAMEWORKS)


def python_of(framework: str) -> Path:
    return Path(sys.executable if framework == "plain" else table.python_of(framework.replace("-", "_")))


@pytest.fixture(scope="module")
def models() -> Iterator[Mapping[str, str]]:
    with model_server() as variables:
        yield variables


@pytest.fixture
def model(models: Mapping[str, str], framework: str, tmp_path: Path) -> Mapping[str, str]:
    """The variables that name the scripted model, for projects without a stand-in, and those of the framework's row."""
    row = next((row for row in table.ROWS if row.name == framework.replace("-", "_")), None)
    return {**models, "CLAUDE_CONFIG_DIR": str(tmp_path / "sessions"), **(row.variables if row else {})}


def make(folder: Path, *options: str) -> Path:
    assert main(["init", str(folder), *options]) == 0
    return folder


def run(python: Path, folder: Path, *arguments: str, **variables: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    env = clean | {"PYTHONPATH": f"{ROOT / 'app'}:{ROOT / 'clients/python/src'}:{folder}", **variables}
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=WAIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.wire
@pytest.mark.processes
@each_framework
def test_the_tests_of_a_new_project_pass(framework: str, tmp_path: Path, model: Mapping[str, str]) -> None:
    folder = make(tmp_path / "my-agent", "--framework", framework)
    assert "2 passed" in run(python_of(framework), folder, *PYTEST, **model)


@pytest.mark.wire
@pytest.mark.processes
@each_framework
def test_a_new_project_is_served_and_asks_before_its_tool_runs(
    framework: str, tmp_path: Path, model: Mapping[str, str]
) -> None:
    python = python_of(framework)
    folder = make(tmp_path / "my-agent", "--framework", framework)
    command = ("env", "-u", "AGUI_AGENT", str(python), "-m", "agui_container", "serve")
    with ServerProcess(command, folder, **model) as server:
        message = {"id": "m1", "role": "user", "content": 'call publish {"text": "hello"}'}
        body = {"threadId": "t1", "runId": "r1", "messages": [message]}
        answer = httpx.post(server.invocations, json=body, timeout=WAIT).text
    (last,) = re.findall(r'^data: (\{"type":"RUN_FINISHED".*)$', answer, re.MULTILINE)
    assert len(json.loads(last)["outcome"]["interrupts"]) == 1
    assert "Done: hello" not in answer


@each_text
def test_a_project_has_all_that_it_needs(framework: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path / "my agent", "--framework", framework)
    shown = capsys.readouterr().out
    names = {path.name for path in folder.iterdir()}
    assert names - {"offline_model.py"} == PROJECT
    assert all(text in shown for text in (*names, f"  cd '{folder}'\n"))
    assert shown.endswith("  agui dev\n")
    settings = tomllib.loads((folder / "agui.toml").read_text())
    assert settings["console_suggestions"] == ['call publish {"text": "hello"}']
    Draft202012Validator(json.loads((folder / "agui.schema.json").read_text())).validate(settings)
    assert (folder / "agui.toml").read_text().startswith("#:schema ./agui.schema.json\n")
    kind = FRAMEWORKS[framework]
    extras = f"all,{kind.extra}" if kind.extra else "all"
    wheels = sorted(path.relative_to(folder).as_posix() for path in (folder / "wheels").iterdir())
    required = [line for line in (folder / "requirements.txt").read_text().splitlines() if line[0] != "#"]
    assert [re.sub(r"\[.*", "", line) for line in required] == [*(f"./{wheel}" for wheel in wheels), *kind.packages]
    assert required[1].endswith(f".whl[{extras}]")
    needs_key = python_of(framework) != Path(sys.executable) and framework != "strands"
    assert ("_API_KEY" in kind.model) is needs_key
    for text in (shown, (folder / "README.md").read_text()):
        assert f"\n\n{kind.model}\n\n" in text
    for name in ("README.md", "Dockerfile"):
        text = (folder / name).read_text()
        assert ("pip install --no-deps agent-framework-ag-ui\n" in text) is (framework == "microsoft")
    assert "$" not in "".join(
        path.read_text() for path in folder.iterdir() if path.name not in {"agui.schema.json", "wheels"}
    )


@pytest.mark.wire
@pytest.mark.processes
@each_whole_framework
def test_a_project_brings_its_framework_and_is_installed_without_an_index_of_our_packages(
    framework: str, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_wheel(package: str) -> Wheel:
        [built] = wheels.glob(f"{package.replace('-', '_')}-*.whl")
        return Wheel(f"wheels/{built.name}", built.read_bytes())

    monkeypatch.setattr("agui_container.cli.init.find_wheel", find_wheel)
    folder = make(tmp_path / "my-agent", "--framework", framework)
    pip = ("-m", "pip", "--python", str(python_of(framework)), "--disable-pip-version-check", "install", "--dry-run")
    printed = run(Path(sys.executable), folder, *pip, "--no-index", "-r", "requirements.txt")
    assert printed.splitlines()[-1].startswith("Would install agui-client-0.1.0 agui-container-0.1.0")
    kind = FRAMEWORKS[framework]
    for package in filter(None, (kind.extra, *kind.packages)):
        assert re.search(rf"already satisfied: \S*{package.replace('-', '.*')}", printed)


@pytest.mark.parametrize("framework", [name for name, kind in FRAMEWORKS.items() if "_API_KEY" in kind.model])
def test_the_example_of_a_framework_is_the_agent_of_a_new_project(framework: str, tmp_path: Path) -> None:
    made = make(tmp_path / "my-agent", "--framework", framework) / "agent.py"
    example = ROOT / "examples" / f"{framework.replace('-', '_')}_agent.py"
    assert example.read_text() == made.read_text()


def test_crewai_is_refused_with_the_line_that_says_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "new"), "--framework", "crewai"]) == 2
    assert capsys.readouterr().err == f"{CREWAI_REFUSED}\n"
    assert (ROOT / "examples" / "two_processes").is_dir()
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path} is not empty. Name a new folder.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert main(["init", str(tmp_path / "mine")]) == 2
    assert capsys.readouterr().err == f"cannot write {tmp_path}/mine: File exists\n"


def test_the_current_folder_may_be_named_and_odd_names_break_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / 'my "agent" \\ $name'
    odd.mkdir()
    monkeypatch.chdir(odd)
    make(Path())
    compile((odd / "agent.py").read_text(), "agent.py", "exec")
    assert (odd / "README.md").read_text().startswith("# my agent  name\n")
