"""Locks, Makefile and image, checked without a Docker engine."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import agui_container
from agui_container.agents.frameworks import FRAMEWORKS
from agui_container.settings import Settings

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SETTINGS = {f"AGUI_{name.upper()}" for name in Settings.model_fields}

# --- locks ------------------------------------------------------------------------------------------------------------


def locked(name: str) -> dict[str, Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    requirements = [Requirement(line) for line in lines if line]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def version(requirement: Requirement) -> str:
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    assert "*" not in specifier.version
    return specifier.version


IMAGE_EXTRAS = ["aws", "grpc", "jwt", "mcp", "metrics", "postgresql", "redis", "sqlite"]
EXTRAS: dict[str, list[str]] = {
    "requirements.lock": IMAGE_EXTRAS,
    "requirements-dev.lock": [*IMAGE_EXTRAS, "dev", "langgraph", "pydantic-ai"],
    "requirements-strands.lock": [*IMAGE_EXTRAS, "strands"],
}
LOCKS: dict[str, list[str]] = {
    name: [*PROJECT["dependencies"], *chain.from_iterable(PROJECT["optional-dependencies"][extra] for extra in extras)]
    for name, extras in EXTRAS.items()
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_exact_versions_and_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert all(version(requirement) and not requirement.url for requirement in locked(name).values())
    assert not re.search(r"://|^\s*-|@ ", text, re.MULTILINE)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_answers_every_dependency_of_the_project(name: str) -> None:
    lock = locked(name)
    for wanted in map(Requirement, LOCKS[name]):
        found = lock[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version(found)), f"{wanted} but locked {found}: run `make lock`"
        assert str(found.marker) == str(wanted.marker)


def test_every_extra_is_in_a_lock() -> None:
    extras = PROJECT["optional-dependencies"]
    assert extras.keys() - {"all", "cli"} == set(chain.from_iterable(EXTRAS.values()))
    assert extras["all"] == [f"agui-container[{','.join(IMAGE_EXTRAS)}]"]
    assert f"IMAGE_EXTRAS := {' '.join(IMAGE_EXTRAS)}\n" in (ROOT / "Makefile").read_text()
    frameworks = {framework.extra for framework in FRAMEWORKS.values()}
    assert frameworks == extras.keys() - {"all", "cli", "dev", *IMAGE_EXTRAS}
    needed = {canonicalize_name(Requirement(line).name) for line in extras["cli"]}
    assert needed - {"agui-client", "agui-container"} <= locked("requirements-dev.lock").keys()


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    assert locked("requirements.lock").items() <= locked("requirements-dev.lock").items()


def test_everything_in_the_image_is_a_wheel_for_aarch64() -> None:
    platforms = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--implementation=cp"]
    command += [f"--python-version={python_of_the_image()}", *(f"--platform={platform}" for platform in platforms)]
    done = subprocess.run(
        [*command, "--report=-", "-r", "requirements.lock"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wheels = [item["download_info"]["url"] for item in json.loads(done.stdout)["install"]]
    assert len(wheels) == len(locked("requirements.lock"))
    assert all(re.search(r"(aarch64|none-any)\.whl$", wheel) for wheel in wheels)


def test_the_version_is_said_once_more_in_the_package() -> None:
    assert PROJECT["version"] == agui_container.__version__


# --- Makefile ---------------------------------------------------------------------------------------------------------


def make(*arguments: str, cwd: Path = ROOT, path: str | None = None, ci: str = "") -> subprocess.CompletedProcess[str]:
    # Without the variables by which an outer make would speak to this one.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    env |= {"CI": ci} | ({"PATH": path} if path else {})
    program = shutil.which("make")
    assert program
    return subprocess.run([program, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a folder where nothing is installed yet."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    return tmp_path


def test_make_help_lists_every_target() -> None:
    targets = re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    listed = re.findall(r"^  make (\S+) +\S", make("help").stdout, re.MULTILINE)
    assert listed == targets
    assert {"run", "test", "check", "format", "lock", "image", "clean", "help"} <= set(listed)
    assert make().stdout == make("help").stdout


@pytest.mark.parametrize("python", ["false", "no-such-python", ""])
def test_make_says_when_python_is_missing_or_too_old(elsewhere: Path, python: str) -> None:
    done = make("run", f"PYTHON={python}", cwd=elsewhere)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert not (elsewhere / ".venv").exists()


@pytest.mark.parametrize(("ci", "continues"), [("", True), ("true", False)])
def test_a_missing_node_is_said_and_fails_only_in_ci(elsewhere: Path, ci: str, *, continues: bool) -> None:
    done = make("js", cwd=elsewhere, path=str(elsewhere), ci=ci)
    assert "Node.js with npm is not installed" in done.stderr
    assert (done.returncode == 0) is continues


def test_make_image_builds_for_arm64_on_the_base_that_was_asked_for() -> None:
    command = make("-n", "image", "IMAGE=name:tag", "BASE_IMAGE=other:base").stdout
    for part in (
        "buildx build",
        "--platform linux/arm64",
        "--build-arg PLATFORM=linux/arm64",
        "-f Dockerfile.arm64",
        "-t name:tag",
        "BASE_IMAGE=other:base",
    ):
        assert part in command
    assert "BASE_IMAGE" not in make("-n", "image").stdout


def test_make_image_builds_for_another_platform() -> None:
    command = make("-n", "image", "PLATFORM=linux/amd64").stdout
    assert "--platform linux/amd64" in command
    assert "--build-arg PLATFORM=linux/amd64" in command


def test_make_run_is_the_command_in_the_environment() -> None:
    commands = make("-n", "-W", "pyproject.toml", "run").stdout.splitlines()
    assert commands[-1] == "exec .venv/bin/agui serve"
    assert any("pip" in command and "install --no-deps --editable ." in command for command in commands)


def test_the_ci_script_can_be_started() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


# --- image ------------------------------------------------------------------------------------------------------------

Stage = list[tuple[str, str]]


def stages() -> list[Stage]:
    """Return the Dockerfile as (instruction, arguments) pairs: what precedes FROM, then one list for each stage."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile.arm64").read_text(), flags=re.MULTILINE)
    found: list[Stage] = [[]]
    for line in filter(None, map(str.strip, text.replace("\\\n", " ").splitlines())):
        instruction, arguments = line.split(maxsplit=1)
        if instruction == "FROM":
            found.append([])
        found[-1].append((instruction, arguments))
    return found


def of(stage: Stage, instruction: str) -> list[str]:
    return [arguments for name, arguments in stage if name == instruction]


def python_of_the_image() -> str:
    found = re.search(r"BASE_IMAGE=\S+/python:(3\.\d+)", "\n".join(of(stages()[0], "ARG")))
    assert found
    return found[1]


def test_the_image_is_built_in_stages_for_arm64_on_a_base_that_can_be_replaced() -> None:
    head, build, final = stages()
    assert "PLATFORM=linux/arm64" in of(head, "ARG")
    assert of(build, "FROM") == ["--platform=${PLATFORM} ${BASE_IMAGE} AS build"]
    assert of(final, "FROM") == ["--platform=${PLATFORM} ${BASE_IMAGE}"]


def test_the_image_installs_the_lock_from_wheels_and_has_no_compiler() -> None:
    _, build, final = stages()
    (install,) = (command for command in of(build, "RUN") if "pip" in command)
    assert "--only-binary=:all:" in install
    assert "requirements.lock" in install
    assert not of(final, "RUN")
    assert not re.search(r"apt|gcc|build-essential|dnf|yum", str((build, final)))


def test_the_final_stage_adds_few_layers() -> None:
    final = stages()[-1]
    assert len([name for name, _ in final if name in {"COPY", "ADD", "RUN", "WORKDIR"}]) <= 4


def test_the_image_runs_as_a_numeric_user_and_gets_signals_itself() -> None:
    final = stages()[-1]
    assert of(final, "USER") == ["1000"]
    assert of(final, "EXPOSE") == ["8080"]
    assert json.loads(of(final, "ENTRYPOINT")[0]) == []
    assert json.loads(of(final, "CMD")[0]) == ["python", "-m", "agui_container", "serve"]


def test_the_image_takes_only_what_exists_and_the_ignore_file_lets_in() -> None:
    _, build, final = stages()
    sources = {source for arguments in of(build, "COPY") for source in arguments.split()[:-1]}
    assert sources == {"app", "deploy/image/prepare.py", "requirements.lock"}
    assert all((ROOT / source).exists() for source in sources)
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert allowed == sources
    assert all(arguments.startswith("--from=build ") for arguments in of(final, "COPY"))


def test_the_image_sets_only_settings_that_exist() -> None:
    (environment,) = of(stages()[-1], "ENV")
    values = dict(pair.split("=", 1) for pair in environment.split())
    assert values["PYTHONUNBUFFERED"] == "1"
    settings = {name: value for name, value in values.items() if name.startswith("AGUI_")}
    assert settings == {
        "AGUI_CONSOLE": "off",
        "AGUI_ERROR_STATUS": "stream",
        "AGUI_LOG_FORMAT": "json",
        "AGUI_ROBOTO": "off",
    }
    assert settings.keys() <= SETTINGS


class PingHandler(BaseHTTPRequestHandler):
    """Answers /ping with the status that the server was given."""

    status = HTTPStatus.OK

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/ping" else HTTPStatus.NOT_FOUND)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(params=[HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE])
def ping(request: pytest.FixtureRequest) -> Iterator[HTTPServer]:
    handler = type("Handler", (PingHandler,), {"status": request.param})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_health_check_follows_ping_and_ignores_proxies(ping: HTTPServer) -> None:
    (check,) = of(stages()[-1], "HEALTHCHECK")
    _, *arguments = json.loads(check.partition(" CMD ")[2])
    env = {"AGUI_PORT": str(ping.server_port), "http_proxy": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, check=False)
    assert (done.returncode == 0) is (ping.RequestHandlerClass.status == HTTPStatus.OK)  # type: ignore[attr-defined]
