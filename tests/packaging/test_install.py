"""The wheel in an environment and a folder of a user's own, where nothing of this checkout can be seen."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.frameworks.conftest import STRANDS_PYTHON
from tests.server.test_embedding import WAIT, answer_of
from tests.sockets.process import ServerProcess

ROOT = Path(__file__).parents[2]

AGENT = """
async def agent(input):
    yield "at home"
"""

PACKAGE_DATA = {
    "agui_container/py.typed",
    "agui_container/agui.schema.json",
    "agui_container/cli/templates/plain/agent.py.txt",
    "agui_container/cli/templates/project/Dockerfile.txt",
    "agui_container/protocol/wire/protobuf/agui.binpb",
    "agui_container/transports/console/static/index.html",
    "agui_container/transports/console/static/app.js.gz",
}


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with the wheel. The dependencies are those of the development environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], env=without_checkout(), check=True, timeout=WAIT)
    where = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    (Path(where.stdout.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def without_checkout() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("AGUI_", "PYTHONPATH"))}


def test_the_wheel_has_the_package_its_data_and_the_license_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert names >= PACKAGE_DATA
    sources = {path.relative_to(ROOT / "app").as_posix() for path in (ROOT / "app").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"agui_container"}
    assert "License-Expression: Apache-2.0\n" in text
    assert any(name.endswith("/LICENSE") for name in names)


@pytest.mark.parametrize(
    "module", ["app", "app.agent", "agent"], ids=["app.py", "a package app", "agent.py beside app"]
)
def test_the_command_serves_an_agent_in_a_folder_of_the_users_own(python: Path, tmp_path: Path, module: str) -> None:
    file = tmp_path / f"{module.replace('.', '/')}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(AGENT)
    if module != "app":
        (tmp_path / "app").mkdir(exist_ok=True)
        (tmp_path / "app" / "__init__.py").touch()
        (tmp_path / "app" / "__main__.py").write_text("raise SystemExit('this is the application of the user')\n")
    agui = python.with_name("agui")
    options = ("serve", f"{module}:agent", "--host", "127.0.0.1", "--port", "0")
    with ServerProcess((str(python), str(agui), *options), tmp_path, PYTHONPATH="") as server:
        assert '"delta":"at home"' in answer_of(server.port)
        page = httpx.get(f"http://127.0.0.1:{server.port}/", timeout=WAIT)
        assert "<html" in page.text


def test_the_module_is_the_same_command(python: Path, tmp_path: Path) -> None:
    outputs = [
        subprocess.run(
            [*command, "--version"], cwd=tmp_path, env=without_checkout(), capture_output=True, text=True, check=True
        ).stdout
        for command in ([python.with_name("agui")], [python, "-m", "agui_container"])
    ]
    assert outputs[0] == outputs[1] != ""
    done = subprocess.run(
        [python, "-c", "import agui_container; print(agui_container.__file__)"],
        cwd=tmp_path,
        env=without_checkout(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(python.parents[1]))


@pytest.mark.parametrize(
    ("extra", "package", "interpreter"),
    [
        ("langgraph", "ag-ui-langgraph", Path(sys.executable)),
        ("pydantic-ai", "pydantic-ai-slim", Path(sys.executable)),
        ("strands", "ag-ui-strands", STRANDS_PYTHON),
    ],
)
def test_an_extra_of_the_wheel_brings_its_framework(wheel: Path, extra: str, package: str, interpreter: Path) -> None:
    """The extra is resolved against the environment in which the framework is tested, without a network."""
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--dry-run", "--no-index", f"{wheel}[{extra}]"],
        env=without_checkout(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Requirement already satisfied: {package}" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Would install agui-container-")
