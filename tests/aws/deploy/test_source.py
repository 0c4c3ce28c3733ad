"""The source of an image: one digest for the same files, and no file that ``.dockerignore`` names."""

import io
import tarfile
from pathlib import Path

import pytest

from agui_container.aws.deploy.source import SourceFolder


def write(folder: Path, **files: str) -> SourceFolder:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SourceFolder(folder)


def names(source: SourceFolder) -> set[str]:
    return {path.as_posix() for path in source.files()}


def test_the_digest_is_that_of_the_files_and_of_the_dockerfile(tmp_path: Path) -> None:
    first = write(tmp_path / "a", agent="x", inner__data="y", Dockerfile="FROM a")
    second = write(tmp_path / "b", inner__data="y", agent="x", Dockerfile="FROM a")
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
    source = write(tmp_path, **{"agent.py": "x", "Dockerfile": "FROM a", ".dockerignore": ignored})
    before = source.digest()
    write(tmp_path, **{".env": "KEY=1", "inner__.env": "KEY=1", ".env.production": "KEY=1", ".envrc": "export KEY=1"})
    assert names(source) == {"agent.py", "Dockerfile", ".dockerignore"}
    assert source.digest() == before
    assert b"KEY=1" not in source.tarred()


def packed(source: SourceFolder) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(source.tarred())) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


def test_the_archive_has_the_files_and_the_dockerfile_under_its_usual_name(tmp_path: Path) -> None:
    write(tmp_path, **{"agent.py": "x", "Dockerfile": "FROM a", "Dockerfile.arm64": "FROM b"})
    source = SourceFolder(tmp_path, "Dockerfile.arm64")
    files = packed(source)
    assert sorted(files) == ["Dockerfile", "Dockerfile.arm64", "agent.py"]
    assert files["Dockerfile"] == b"FROM b"
    assert source.tarred() == source.tarred()
