"""The source of an image: one digest for the same files, and no file that ``.dockerignore`` names."""

import io
import re
import tarfile
from pathlib import Path

import pytest

from agui_container.aws.deploy.source import SourceFolder

pytestmark = pytest.mark.usefixtures("stand_in_wheels")


def write(folder: Path, **files: str) -> SourceFolder:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SourceFolder(folder)


def names(source: SourceFolder) -> set[str]:
    return {path.as_posix() for path in source.files()}


def test_the_digest_is_that_of_the_files_and_of_the_dockerfile(tmp_path: Path) -> None:
    first = write(tmp_path / "a", agent="x", inner__data="y")
    second = write(tmp_path / "b", inner__data="y", agent="x")
    assert first.digest() == second.digest()
    write(tmp_path / "b", agent="z")
    assert first.digest() != second.digest()
    before = first.digest()
    (tmp_path / "a" / "agent").chmod(0o755)
    assert first.digest() != before
    before = first.digest()
    write(tmp_path / "a", Dockerfile="FROM scratch")
    assert first.digest() != before


FILES = {"#notes", "[k].pem", "a.py", "a.pem", "b.pem", "data/b.csv", "data/c/d.csv", "keys/a.pem", "my key"}
PEM = {"a.pem", "b.pem", "keys/a.pem", "[k].pem"}
IGNORES = {
    "": set(),
    "data": {"data/b.csv", "data/c/d.csv"},
    "/data/": {"data/b.csv", "data/c/d.csv"},
    "./data": {"data/b.csv", "data/c/d.csv"},
    "data//c": {"data/c/d.csv"},
    "keys/../data/./c": {"data/c/d.csv"},
    "data/*.csv": {"data/b.csv"},
    "data/**": {"data/b.csv", "data/c/d.csv"},
    "**/*.csv": {"data/b.csv", "data/c/d.csv"},
    "*.csv": set(),
    "*.pem": PEM - {"keys/a.pem"},
    "**/*.pem": PEM,
    "[ab].pem": {"a.pem", "b.pem"},
    "[^a].pem": {"b.pem"},
    "[a-b].p?m": {"a.pem", "b.pem"},
    "\\[k\\].pem": {"[k].pem"},
    "\\#notes": {"#notes"},
    "#notes": set(),
    "\ufeffa.py": {"a.py"},
    "  my key  ": {"my key"},
    "data\n!data/c/d.csv": {"data/b.csv"},
    "data\n!./data/c": {"data/b.csv"},
    "data\n! data//c": {"data/b.csv"},
    "**/*.pem\n!a.pem\na.*": {*PEM, "a.py"},
    "*\n!data": FILES - {"data/b.csv", "data/c/d.csv"},
    ".\n/\n!\n\n": set(),
}


@pytest.mark.parametrize(("ignored", "left_out"), IGNORES.items(), ids=map(repr, IGNORES))
def test_files_that_dockerignore_names_are_left_out(tmp_path: Path, ignored: str, left_out: set[str]) -> None:
    source = write(tmp_path, **{name.replace("/", "__"): "" for name in (*FILES, ".git/HEAD", ".venv/pyvenv.cfg")})
    (tmp_path / "keys" / "__pycache__").mkdir()
    (tmp_path / "keys" / "__pycache__" / "a.pyc").touch()
    (tmp_path / ".dockerignore").write_text(ignored)
    assert FILES - names(source) == left_out
    assert names(source) <= {*FILES, ".dockerignore"}


@pytest.mark.parametrize("ignored", ["", "!.env\n!**/.env.*"])
def test_secrets_of_this_machine_are_in_no_image(tmp_path: Path, ignored: str) -> None:
    source = write(tmp_path, **{"agent.py": "x", ".dockerignore": ignored})
    before = source.digest()
    write(tmp_path, **{".env": "KEY=1", "inner__.env": "KEY=1", ".env.production": "KEY=1", ".envrc": "export KEY=1"})
    assert names(source) == {"agent.py", ".dockerignore"}
    assert source.digest() == before
    assert b"KEY=1" not in source.tarred()


SERVER = "SERVER"
WHEEL = "wheels/agui_container-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({"agent.py": ""}, [SERVER]),
        ({"agent.py": "", "requirements.txt": "httpx\n# agui-container\n"}, ["-r requirements.txt", SERVER]),
        ({"agent.py": "", "requirements.txt": "./agui_container-1.0-py3-none-any.whl[aws]\n"}, ["-r requirements.txt"]),
        (
            {"agent.py": "", "requirements.txt": "git+https://a.example/agui.git#egg=agui-container"},
            ["-r requirements.txt"],
        ),
    ],
)
def test_an_image_without_a_dockerfile_of_yours_can_serve_the_agent(
    tmp_path: Path, files: dict[str, str], installed: list[str]
) -> None:
    source = write(tmp_path, **files)
    [line] = re.findall(r"^RUN pip install --no-cache-dir (.*)$", source.dockerfile_text, re.MULTILINE)
    assert line.replace(f"'./{WHEEL}[all]'", SERVER) == " ".join(installed)
    assert (WHEEL in packed(source)) is (SERVER in installed)


def packed(source: SourceFolder) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(source.tarred())) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


def test_the_archive_has_the_files_a_dockerfile_and_the_wheel_of_this_server(tmp_path: Path) -> None:
    source = write(tmp_path, **{"agent.py": "x", "requirements.txt": "httpx"})
    files = packed(source)
    assert sorted(files) == ["Dockerfile", "agent.py", "requirements.txt", WHEEL]
    assert b"pip install --no-cache-dir -r requirements.txt" in files["Dockerfile"]
    assert source.tarred() == source.tarred()


def test_a_folder_without_a_dockerfile_gets_the_one_of_a_project(project: Path) -> None:
    file = project / "Dockerfile"
    comment, _, instructions = file.read_text().partition("\n")
    assert comment.startswith("#")
    file.unlink()
    assert SourceFolder(project).dockerfile_text == instructions
