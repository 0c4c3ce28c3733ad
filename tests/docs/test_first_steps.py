"""The commands of the guides for beginners run as they are pasted: in an empty folder with an environment of its own.

One environment is made from nothing, by the first commands of docs/index.md. The others begin with the packages that
pip has chosen there, without ours. The other differences from a reader's machine are free ports, and a local repository
in place of ``YOUR-HOST``.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.aws.platform.process import NO_CREDENTIALS
from tests.cli.terminal import EmulatedTerminal
from tests.docs.documents import GUIDES, INSTALL, PYTHON_CLIENT, README, SERVES, output_of
from tests.docs.markdown import Block, Document
from tests.server.sockets.process import ServerProcess, environment
from tests.server.test_embedding import answer_of
from tests.wheels import BUILD, copy_sources, made_once

INSTALL_SECONDS = 1_800
"""Seconds within which pip resolves and installs, also on a busy machine."""

pytestmark = [pytest.mark.packages, pytest.mark.timeout(INSTALL_SECONDS)]
OURS_AND_PIP = shutil.ignore_patterns("agui_*", "pip", "pip-*")
BASH = ("bash", "-euo", "pipefail", "-c")
MESSAGE = 'call publish {"text": "hello"}'


def commands(document: Document) -> list[str]:
    return [block.text for block in document.blocks if INSTALL in block.marks]


class GuideReader:
    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        for wheel in wheels.glob("*.whl"):
            shutil.copy(wheel, folder)
        python = folder / "bin" / "python3"  # the one that the reader has, whatever the PATH of this machine says
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        path = {"PATH": f"{folder / '.venv' / 'bin'}:{python.parent}:{os.environ['PATH']}", "PYTHONPATH": ""}
        self.variables = {**path, "XDG_STATE_HOME": str(folder), "BROWSER": "true", **NO_CREDENTIALS}

    def copy_packages(self, packages: Path) -> None:
        shutil.copytree(packages / ".venv" / "lib", self.folder / ".venv" / "lib", ignore=OURS_AND_PIP)

    def run(self, script: str, inside: str = ".", typed: str = "", **variables: str) -> str:
        done = subprocess.run(
            [*BASH, script],
            cwd=self.folder / inside,
            env=environment({**self.variables, **variables}),
            input=typed,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def chat(self, command: str) -> None:
        """Chat in a terminal: let the tool run that asks, and leave."""
        env = {**environment(self.variables), "TERM": "xterm-256color"}
        terminal = EmulatedTerminal([*BASH, command], 100, env, self.folder)
        try:
            terminal.wait_for("\n>")
            terminal.send(f"{MESSAGE}\r")
            terminal.wait_for("[y] allow")
            terminal.send("y")
            terminal.wait_for("Done: hello", "\n>\n")
            terminal.send("\x04")
            assert terminal.wait_for_end() == 0
        finally:
            terminal.close()

    def serving(self, script: str, inside: str = ".") -> ServerProcess:
        """Run a block whose last command serves, in the place of the shell so that it gets signals."""
        *before, last = script.splitlines()
        served = "\n".join([*before, f"exec {last}"])
        return ServerProcess((*BASH, served), self.folder / inside, **self.variables)


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def packages(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the environment that is made from nothing."""

    def install(folder: Path) -> None:
        GuideReader(folder, wheels).run(commands(GUIDES["index"])[0])

    return made_once(tmp_path_factory, "packages", install)


@pytest.fixture
def reader(packages: Path, wheels: Path, tmp_path: Path) -> GuideReader:
    """A reader who has an environment, and has the guide's packages still to install."""
    reader = GuideReader(tmp_path, wheels)
    reader.copy_packages(packages)
    reader.run("python3 -m venv .venv")
    return reader


def test_a_project_is_made_and_served_and_its_tool_runs_once_it_is_allowed(reader: GuideReader) -> None:
    install, serve, chat, test, doctor, *_ = commands(GUIDES["index"])
    [script] = [block for block in GUIDES["index"].blocks if "SyncSession" in block.text]
    reader.run(install)
    with reader.serving(serve) as server:
        reader.chat(f"{chat.strip()} localhost:{server.port}")
        printed = reader.run("python -", typed=script.text.replace(":8080", f":{server.port}"))
        assert printed == output_of(script)
    assert "2 passed" in reader.run(test, "my-agent")
    assert "settings" in reader.run(doctor, "my-agent")


def test_the_start_of_the_readme_serves_a_project_of_a_checkout_that_others_install(
    packages: Path, wheels: Path, tmp_path: Path
) -> None:
    [start] = commands(README)
    (checkout := tmp_path / "checkout").mkdir()
    copy_sources(checkout)
    reader = GuideReader(checkout, wheels)
    reader.copy_packages(packages)
    with reader.serving(start) as server:
        reader.chat(f"agui chat localhost:{server.port}")
    project = tmp_path / "my-agent"
    shutil.rmtree(checkout)
    [install] = re.findall(r"^pip install .+$", (project / "README.md").read_text(), re.MULTILINE)
    colleague = GuideReader(project, wheels)
    colleague.copy_packages(packages)
    with colleague.serving(f"python3 -m venv .venv && . .venv/bin/activate\n{install}\nagui serve") as server:
        colleague.chat(f"agui chat localhost:{server.port}")


def test_the_package_is_installed_from_its_wheel_from_git_and_with_a_framework(
    reader: GuideReader, tmp_path: Path
) -> None:
    install, *_, build, from_git, with_framework = commands(GUIDES["index"])
    assert build.strip() == BUILD
    reader.run(install)
    [agent] = [block for block in GUIDES["index"].blocks if block.file_name == "app.py"]
    (tmp_path / "app.py").write_text(agent.text)
    [serve] = [block for block in GUIDES["index"].blocks if SERVES in block.marks]
    with reader.serving(serve.text) as server:
        assert "Hello from a folder of your own." in answer_of(server.port)
    reader.run("pip uninstall --yes agui-container")  # the wheel and the repository are alternatives
    reader.run(from_git, **repository(tmp_path / "host"))
    assert "agui-container @ git+https://YOUR-HOST/" in reader.run("pip freeze")
    reader.run(with_framework)
    reader.run("python -c 'import ag_ui_strands'")


def repository(host: Path) -> dict[str, str]:
    origin = host / "agui-container.git"
    origin.mkdir(parents=True)
    copy_sources(origin)
    git = ["git", "-C", str(origin), "-c", "user.name=Test", "-c", "user.email=test@localhost"]
    for command in ("init --quiet --initial-branch main", "add --all", "commit --quiet --message All"):
        subprocess.run([*git, *command.split()], check=True)
    setting = {"GIT_CONFIG_KEY_0": f"url.{host.as_uri()}/.insteadOf", "GIT_CONFIG_VALUE_0": "https://YOUR-HOST/"}
    return {"GIT_CONFIG_COUNT": "1", **setting}


def test_the_client_is_installed_from_a_checkout_beside_the_environment(reader: GuideReader) -> None:
    [install] = commands(PYTHON_CLIENT)
    checkout = reader.folder / "agui-container"
    checkout.mkdir()
    copy_sources(checkout)
    reader.run(install)
    assert "/agui-container/clients/python" in reader.run("pip freeze")


def test_a_project_is_planned_for_agentcore_and_answers_behind_the_local_one(reader: GuideReader) -> None:
    plan, serve, chat = commands(GUIDES["agentcore"])
    assert "AWS::BedrockAgentCore::Runtime" in reader.run(plan)
    with reader.serving(f"{serve.strip()} --port 0", "weather") as server:
        reader.chat(chat.replace(":8100", f":{server.port}"))


def test_a_project_is_planned_and_written_as_code_by_the_guide_to_deployments(reader: GuideReader) -> None:
    make, plan, emit = commands(GUIDES["deploy"])
    reader.run(make)
    assert "AWS::BedrockAgentCore::Runtime" in reader.run(plan, "weather")
    reader.run(emit, "weather")
    assert (reader.folder / "weather" / "infrastructure" / "template.json").exists()


def test_a_handler_of_awss_sdk_is_served_with_the_changes_that_the_guide_shows(reader: GuideReader) -> None:
    serve, ask = (block for block in GUIDES["frameworks"].blocks if INSTALL in block.marks)
    handler, requirements, image = (changed(block) for block in GUIDES["frameworks"].blocks if block.language == "diff")
    assert "agui_container" in requirements
    (reader.folder / "my_agent.py").write_text(handler)
    in_image = re.sub(r"^CMD (.+)", lambda command: shlex.join(json.loads(command[1])), image, flags=re.MULTILINE)
    for script in (serve.text, re.sub("^ENV ", "export ", in_image, flags=re.MULTILINE)):
        with reader.serving(script) as server:
            assert reader.run(ask.text.replace(":8080", f":{server.port}")) == output_of(ask)


def changed(diff: Block) -> str:
    return "".join(line[1:] for line in diff.text.splitlines(keepends=True) if not line.startswith("-"))
