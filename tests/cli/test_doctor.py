"""``agui doctor`` with faults of the machine, the agent and stores: what is found, what to do, and the exit status."""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from agui_container.settings import Settings
from agui_container.stores import open_store
from tests.engine.doubles import Json
from tests.secret_search import planted, search

pytestmark = [pytest.mark.wire, pytest.mark.processes]

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"


@dataclass
class FixedServer:
    status: int = 200
    content_type: str = "application/json"
    body: str = "{}"
    skew: float = 0
    port: int = field(default=0, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def fixed_server() -> Iterator[FixedServer]:
    answer = FixedServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response_only(answer.status)
            self.send_header("Date", formatdate(self.date(), usegmt=True))
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body.encode())))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body.encode())

        def date(self) -> float:
            return time.time() - answer.skew

        do_GET = do_HEAD = do_POST  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        answer.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield answer
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder. No variable of the machine counts, and the port is any."""
    for name in [*(f"AGUI_{name.upper()}" for name in Settings.model_fields), *os.environ]:
        if name.startswith(("AGUI_", "AWS_")):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGUI_PORT", "0")
    monkeypatch.setenv("AGUI_HOST", "127.0.0.1")
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
        "port": OK,
        "store": OK,
        "bus": OK,
        "aws": SKIPPED,
        "model": OK,
        "mcp": SKIPPED,
        "clock": SKIPPED,
        "install": SKIPPED,
    }
    assert "\x1b" not in "".join(lines)


def test_a_fault_is_shown_with_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AGUI_PROT", "1")
    assert main(["doctor"]) == 1
    *_, fault, advice = capsys.readouterr().out.splitlines()
    assert fault == "failed   settings      AGUI_PROT is not a setting of this version; did you mean AGUI_PORT?"
    assert advice.strip() == "-> Correct it there. `agui config` shows all settings."


def test_a_package_that_is_missing_or_does_not_fit_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = "".join(f"Requires-Dist: {each}\n" for each in ("no-such-package", "click<8", "other; extra == 'x'"))
    information = folder / "packages" / "agui_container-0.1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: agui-container\nVersion: 0.1.0\n{needed}")
    monkeypatch.setenv("PYTHONPATH", str(information.parent))
    fault, _ = examine(capsys, "install")
    assert fault["status"] == FAILED
    assert "requires no-such-package, which is not installed" in fault["detail"]
    assert "has requirement click<8, but you have click" in fault["detail"]
    assert "other" not in fault["detail"]


@pytest.mark.parametrize(
    ("required", "status", "detail"),
    [
        ("", OK, "an empty environment can install requirements.txt"),
        ("agui-container[all]", FAILED, "requirements.txt names agui-container[all], which is on no index."),
        (
            "./wheels/agui_client-1-py3-none-any.whl",
            FAILED,
            "names wheels/agui_client-1-py3-none-any.whl, which is not",
        ),
        ("-r missing.txt", FAILED, "No such file or directory"),
    ],
)
def test_requirements_that_an_empty_environment_cannot_install_are_a_fault(
    folder: Path, capsys: pytest.CaptureFixture[str], required: str, status: str, detail: str
) -> None:
    (folder / "requirements.txt").write_text(required)
    (found,) = examine(capsys, "install")
    assert found["status"] == status
    assert detail in found["detail"]


def test_a_port_that_another_program_has_is_a_fault_and_a_server_on_it_is_none(
    fixed_server: FixedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_PORT", str(fixed_server.port))
    (found,) = examine(capsys, "port")
    assert found["status"] == FAILED
    assert found["detail"].startswith(f"cannot listen on 127.0.0.1:{fixed_server.port}: Address already in use.")
    fixed_server.body = '{"status": "Healthy", "time_of_last_update": 1}'
    (found,) = examine(capsys, "port")
    assert found["detail"] == f"a server answers on 127.0.0.1:{fixed_server.port}: Healthy"


@pytest.mark.parametrize(
    ("setting", "value", "detail"),
    [
        ("AGENT", "nowhere:agent", "There is no module 'nowhere' (wanted for 'nowhere')."),
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


@pytest.mark.parametrize(
    ("setting", "url", "detail"),
    [
        ("STORE", "postgresql://user:{}@127.0.0.1:1/database", "the database at 127.0.0.1:1 failed: "),
        ("BUS", "redis://user:{}@127.0.0.1:1/0", ""),
    ],
)
def test_a_server_that_cannot_be_reached_is_a_fault_without_its_password(
    setting: str, url: str, detail: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"AGUI_{setting}", url.format(planted("password")))
    (found,) = examine(capsys, setting.lower())
    assert found["status"] == FAILED
    assert found["detail"].startswith(detail)


def test_the_servers_of_replicas_are_reached(
    postgres_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGUI_STORE", postgres_url)
    monkeypatch.setenv("AGUI_BUS", redis_url)
    (migrations,) = examine(capsys, "migrations")
    assert migrations["status"] == WARNING
    asyncio.run(_open_and_close(open_store(postgres_url)))
    assert [found["status"] for name in ("store", "migrations", "bus") for found in examine(capsys, name)] == [OK] * 3
