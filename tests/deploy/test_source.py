"""The source of an image: one digest for the same files, and no file that ``.dockerignore`` names."""

import io
import re
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
@pytest.mark.parametrize("ignored", ["", "!.env\n!**/.env.*\n!infrastructure"])
def test_secrets_of_this_machine_and_infrastructure_code_are_in_no_image(tmp_path: Path, ignored: str) -> None:
    source = write(tmp_path, **{"agent.py": "x", ".dockerignore": ignored})
    before = source.digest()
    write(tmp_path, **{".env": "KEY=1", "inner__.env": "KEY=1", ".env.production": "KEY=1", ".envrc": "export KEY=1"})
    write(tmp_path, **{"infrastructure__template.json": "{}", "infrastructure__cdk.out__tree.json": "{}"})
    assert names(source) == {"agent.py", ".dockerignore"}
    assert source.digest() == before
    for content in (source.zipped(), source.tarred()):
        assert b"KEY=1" not in content


@requirement("deploy.docker")
def test_a_package_of_yours_that_is_called_infrastructure_is_in_the_image(tmp_path: Path) -> None:
    source = write(tmp_path, infrastructure__database="x")
    assert names(source) == {"infrastructure/database"}


SDK = "from bedrock_agentcore.runtime import AGUIApp\n"
SERVER = "'agui-container[all]=="


@requirement("deploy.docker")
@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({"agent.py": ""}, [SERVER]),
        ({"agent.py": SDK}, [SERVER, "bedrock-agentcore"]),
        ({"agent.py": SDK, "requirements.txt": "httpx\n"}, ["-r requirements.txt", SERVER, "bedrock-agentcore"]),
        (
            {"agent.py": SDK, "requirements.txt": "bedrock-agentcore-starter-toolkit\n# agui-container\n"},
            ["-r requirements.txt", SERVER, "bedrock-agentcore"],
        ),
        ({"agent.py": SDK, "requirements.txt": "bedrock_agentcore>=1.25\n"}, ["-r requirements.txt", SERVER]),
        (
            {"agent.py": SDK, "requirements.txt": "httpx\n", "agui_container-1.0-py3-none-any.whl": ""},
            ["-r requirements.txt", "'./agui_container-1.0-py3-none-any.whl[all]'", "bedrock-agentcore"],
        ),
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
    dockerfile = write(tmp_path, **files).dockerfile_text
    [line] = re.findall(r"^RUN pip install --no-cache-dir (.*)$", dockerfile, re.MULTILINE)
    assert re.sub(r"==[^']+'", "==", line) == " ".join(installed)


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
