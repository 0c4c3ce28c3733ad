"""The wheels of a project: packed from what is installed, or built from a checkout."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agui_container.cli.wheels import CLIENT, SERVER, WheelError, find_wheel
from tests.docs.documents import ROOT

pytestmark = pytest.mark.packages

METADATA = "Metadata-Version: 2.4\nName: agui-client\nVersion: 0.1.0\n"


def install(target: Path, *wheels: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, *wheels], check=True)


def wheel_of(package: str, folder: Path) -> Path:
    (found,) = folder.glob(f"{package.replace('-', '_')}-*.whl")
    return found


def contents(wheel: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.mark.parametrize("package", [SERVER, CLIENT])
def test_an_installed_package_is_packed_as_the_wheel_that_it_came_from(
    package: str, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = wheel_of(package, wheels)
    install(tmp_path / "first", original)
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    packed = find_wheel(package)
    assert packed.path == f"wheels/{original.name}"
    assert contents(packed.content) == contents(original.read_bytes())
    (tmp_path / original.name).write_bytes(packed.content)
    install(tmp_path / "second", tmp_path / original.name)
    assert contents_of(tmp_path / "second") == contents_of(tmp_path / "first")


def contents_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    by_pip = {"RECORD", "direct_url.json"}  # they have the path of the wheel
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files if path.name not in by_pip}


@pytest.mark.parametrize("package", [SERVER, CLIENT])
def test_a_checkout_is_built_and_gets_no_file(package: str, wheels: Path) -> None:
    before = leftovers()
    built = find_wheel(package)
    original = wheel_of(package, wheels)
    assert built.path == f"wheels/{original.name}"
    assert contents(built.content) == contents(original.read_bytes())
    assert leftovers() == before


def leftovers() -> set[Path]:
    """What setuptools leaves in a folder that it builds."""
    folders = (ROOT, ROOT / "app", ROOT / "clients" / "python", ROOT / "clients" / "python" / "src")
    return {path for folder in folders for name in ("build", "*.egg-info") for path in folder.glob(name)}


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("agui_client-0.1.0.dist-info", {"WHEEL": "", "direct_url.json": '{"dir_info": {"editable": true}}'}),
        ("agui_client.egg-info", {}),
    ],
    ids=["editable", "egg-info of a build"],
)
def test_what_is_not_installed_from_a_wheel_is_built(
    folder: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / folder
    info.mkdir()
    for name, text in {"METADATA": METADATA, "PKG-INFO": METADATA, **files}.items():
        (info / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("agui_container.cli.wheels.BUILD_SECONDS", 0)
    with pytest.raises(WheelError, match=r"pip has not built .*clients/python within 0 seconds\."):
        find_wheel(CLIENT)


def test_a_client_that_is_not_installed_is_named(wheels: Path, tmp_path: Path) -> None:
    install(tmp_path / "packages", wheel_of(SERVER, wheels))
    env = os.environ | {"PYTHONPATH": str(tmp_path / "packages")}
    command = [sys.executable, "-m", "agui_container", "init", "new"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("installs elsewhere: agui-client is not installed. Install its wheel.\n")
