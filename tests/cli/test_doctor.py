"""``agui doctor`` with faults of the machine, the agent and stores: what is found, what to do, and the exit status."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from agui_container.settings import Settings
from agui_container.stores import open_store
from tests.engine.doubles import Json
from tests.secret_search import planted, search

pytestmark = [pytest.mark.wire, pytest.mark.processes]

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"

ISSUER = "http://127.0.0.1:1/.well-known/openid-configuration"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder. No variable of the machine counts."""
    for name in [*(f"AGUI_{name.upper()}" for name in Settings.model_fields), *os.environ]:
        if name.startswith(("AGUI_", "AWS_")):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return tmp_path


Found = list[Json]


def examine(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> Found:
    status = main(["doctor", "--json", *options])
    shown = capsys.readouterr().out
    search(shown, "the output of agui doctor")
    report = json.loads(shown)
    has_failed = any(finding["status"] == FAILED for finding in report["checks"])
    assert (report["ok"], status) == (not has_failed, int(has_failed))
    assert all(finding.get("advice") for finding in report["checks"] if finding["status"] in {FAILED, WARNING})
    return [finding for finding in report["checks"] if finding["name"].startswith(name)]


def test_the_defaults_are_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[1]: line.split()[0] for line in lines}
    assert found == {
        "python": OK,
        "packages": OK,
        "settings": OK,
        "agent": OK,
        "store": OK,
        "model": OK,
        "mcp": SKIPPED,
        "install": SKIPPED,
    }
    assert "\x1b" not in "".join(lines)


def test_a_fault_is_shown_with_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AGUI_PROT", "1")
    assert main(["doctor"]) == 1
    *_, fault, advice = capsys.readouterr().out.splitlines()
    assert fault == "failed   settings      AGUI_PROT is not a setting of this version; did you mean AGUI_PORT?"
    assert advice.strip() == "-> Correct it there. `agui config` shows all settings."


@pytest.mark.parametrize(
    ("setting", "value", "detail"),
    [
        ("AGENT", "nowhere:agent", "There is no module 'nowhere', neither in the working folder nor installed."),
        ("AGENT", "broken:agent", "The module 'broken' cannot be imported: ZeroDivisionError: division by zero"),
        ("AGENT", "lacking:agent", "The module 'lacking' cannot be imported: ModuleNotFoundError: No module named"),
        ("TOOLS", "json:dumps", "AGUI_TOOLS: 'json:dumps' is"),
        ("TOOL_POLICY", '[{"policy": "ask"}]', "AGUI_TOOL_POLICY: 0.tool_pattern: "),
        ("MCP_SERVERS", "[1]", "AGUI_MCP_SERVERS: 0: "),
        ("AUTH", "jwt", "AGUI_AUTH_DISCOVERY_URL must be"),
    ],
)
def test_mistakes_that_would_stop_the_start_are_found(
    setting: str, value: str, detail: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.py").write_text("print('a line of an agent')\n1 / 0\n")
    Path("lacking.py").write_text("import not_installed\n")
    monkeypatch.setenv(f"AGUI_{setting}", value)
    (found,) = examine(capsys, "agent")
    assert found["status"] == FAILED
    assert found["detail"].startswith(detail)
    assert ("pip install -r requirements.txt" in found["advice"]) is (value == "lacking:agent")


@pytest.mark.parametrize(
    ("required", "status", "detail"),
    [
        ("", OK, "an empty environment can install requirements.txt"),
        ("agui-container[all]", FAILED, "requirements.txt names agui-container[all], which is on no index."),
        ("./agui_client-1-py3-none-any.whl", FAILED, "requirements.txt names agui_client-1-py3-none-any.whl, which is"),
        ("-r missing.txt", FAILED, "ERROR: Could not open requirements file: [Errno 2] No such file or directory"),
        ("--no-index\npytest", FAILED, "ERROR: No matching distribution found for pytest"),
    ],
)
def test_requirements_that_an_empty_environment_cannot_install_are_a_fault(
    folder: Path, capsys: pytest.CaptureFixture[str], required: str, status: str, detail: str
) -> None:
    (folder / "requirements.txt").write_text(required)
    found, *_ = examine(capsys, "install")
    assert found["status"] == status
    assert found["detail"].startswith(detail)


def test_a_database_that_is_not_there_yet_is_not_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", "sqlite:///store.db")
    (found,) = examine(capsys, "store")
    assert (found["status"], found["detail"]) == (OK, "store.db is made at the start")
    assert not (folder / "store.db").exists()


def test_missing_migrations_are_counted_and_not_applied(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", "sqlite:///store.db")
    (folder / "store.db").touch()
    first, again = (examine(capsys, "migrations") for _ in range(2))
    assert first == again
    assert (first[0]["status"], first[0]["detail"].partition(" ")[2]) == (WARNING, "steps are missing")
    store = open_store("sqlite:///store.db")
    asyncio.run(_open_and_close(store))
    (found,) = examine(capsys, "migrations")
    assert found["status"] == OK


async def _open_and_close(store: object) -> None:
    await store.open()  # type: ignore[attr-defined]
    await store.aclose()  # type: ignore[attr-defined]


def test_a_database_that_cannot_be_reached_is_a_fault_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", f"postgresql://user:{planted('password')}@127.0.0.1:1/database")
    (found,) = examine(capsys, "store")
    assert found["status"] == FAILED
    assert found["detail"].startswith("the database at 127.0.0.1:1 failed: ")


@pytest.mark.parametrize(
    ("name", "variables", "detail"),
    [
        ("files", {"FILES": "taken/files"}, "taken/files cannot be written: taken is no folder"),
        ("files", {"FILES": "taken"}, "taken cannot be written: taken is no folder"),
        ("files", {"FILES": "s3://bucket"}, "the bucket bucket: Unable to locate credentials"),
        ("files", {"FILES": "ftp://bucket"}, "AGUI_FILES=ftp://bucket: must be a folder, "),
        ("bus", {"BUS": "redis://127.0.0.1:1"}, "the bus at 127.0.0.1:1 failed: "),
        ("auth", {"AUTH": "jwt", "AUTH_ALLOWED_AUDIENCE": "me", "AUTH_DISCOVERY_URL": ISSUER}, "ConnectError: "),
    ],
)
def test_what_a_start_does_not_reach_is_a_fault(
    name: str,
    variables: Mapping[str, str],
    detail: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("taken").touch()
    for variable, value in variables.items():
        monkeypatch.setenv(f"AGUI_{variable}", value)
    (found,) = examine(capsys, name)
    assert found["status"] == FAILED
    assert found["detail"].startswith(detail)


def test_a_folder_for_files_is_not_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_FILES", "new/files")
    (found,) = examine(capsys, "files")
    assert (found["status"], found["detail"]) == (OK, "new/files can be written")
    assert not (folder / "new").exists()


def test_the_database_of_replicas_is_reached(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", postgres_url)
    (migrations,) = examine(capsys, "migrations")
    assert migrations["status"] == WARNING
    asyncio.run(_open_and_close(open_store(postgres_url)))
    assert [found["status"] for name in ("store", "migrations") for found in examine(capsys, name)] == [OK] * 2
