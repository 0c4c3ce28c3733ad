"""The source of an image: one digest for the same files, and no file that ``.dockerignore`` names."""

import io
import zipfile
from pathlib import Path

import pytest

from agui_container.deploy.source import SourceFolder
from tests.requirements import requirement


def write(folder: Path, **files: str) -> SourceFolder:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SourceFolder(folder)


def names(source: SourceFolder) -> set[str]:
    return {path.as_posix() for path in source.files()}


@requirement("deploy.docker")
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


@requirement("deploy.docker")
@pytest.mark.parametrize(
    ("ignored", "expected"),
    [
        ("", {"a.py", "data/b.csv", "data/c/d.csv"}),
        ("data", {"a.py"}),
        ("data/*.csv", {"a.py", "data/c/d.csv"}),
        ("**/*.csv", {"a.py"}),
        ("# data\n\n*.py\n", {"data/b.csv", "data/c/d.csv"}),
        ("data\n!data/c/d.csv", {"a.py", "data/c/d.csv"}),
        ("?.py", {"data/b.csv", "data/c/d.csv"}),
    ],
)
def test_files_that_dockerignore_names_are_left_out(tmp_path: Path, ignored: str, expected: set[str]) -> None:
    folder = tmp_path / "p"
    files = {"data__b.csv": "", "data__c__d.csv": "", "a.py": "", ".git__HEAD": "", ".venv__pyvenv.cfg": ""}
    source = write(folder, **files)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_text("")
    (folder / ".dockerignore").write_text(ignored)
    assert names(source) - {".dockerignore"} == expected


@requirement("deploy.docker")
def test_the_zip_has_the_files_and_a_dockerfile(tmp_path: Path) -> None:
    source = write(tmp_path, **{"agent.py": "x", "requirements.txt": "agui-container"})
    archive = zipfile.ZipFile(io.BytesIO(source.zipped()))
    assert sorted(archive.namelist()) == ["Dockerfile", "agent.py", "requirements.txt"]
    assert b"pip install --no-cache-dir -r requirements.txt" in archive.read("Dockerfile")
    assert source.zipped() == source.zipped()


@requirement("deploy.docker")
def test_a_folder_without_a_dockerfile_gets_the_one_of_a_project(project: Path) -> None:
    file = project / "Dockerfile"
    comment, _, instructions = file.read_text().partition("\n")
    assert comment.startswith("#")
    file.unlink()
    assert SourceFolder(project).dockerfile_text == instructions
