"""The wheel in an environment and a folder of a user's own, where nothing of this checkout can be seen."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.agents.frameworks.table import python_of
from tests.server.sockets.process import ServerProcess
from tests.server.test_embedding import WAIT, answer_of

ROOT = Path(__file__).parents[2]

AGENT = """
async def agent(input):
    yield "at home"
"""

pytestmark = [pytest.mark.wire, pytest.mark.packages]


@pytest.fixture(scope="module")
def python(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with the wheel. The dependencies are those of the development environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, wheels.glob("agui_*.whl"))], env=without_checkout(), check=True, timeout=WAIT)
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


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for path in (ROOT / "app").rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert names == {path.relative_to(ROOT / "app").as_posix() for path in files}


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


@pytest.mark.parametrize(
    ("extra", "package", "interpreter"),
    [
        ("langgraph", "ag-ui-langgraph", Path(sys.executable)),
        ("pydantic-ai", "pydantic-ai-slim", Path(sys.executable)),
        ("strands", "ag-ui-strands", python_of("strands")),
    ],
)
def test_an_extra_of_the_wheel_brings_its_framework(wheel: Path, extra: str, package: str, interpreter: Path) -> None:
    """The extra is resolved against the environment in which the framework is tested, without a network."""
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--dry-run", "--no-index", "--find-links", str(wheel.parent), f"{wheel}[{extra}]"],
        env=without_checkout(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Requirement already satisfied: {package}" in done.stdout
    assert re.fullmatch(r"Would install agui-client-\S+ agui-container-\S+", done.stdout.splitlines()[-1])
