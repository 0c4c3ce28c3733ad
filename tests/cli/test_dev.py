"""``agui dev``: restarts on changes, one port, threads that survive, and the page."""

import os
import socket
import sys
from pathlib import Path

import httpx
import pytest
from uvicorn.supervisors.watchfilesreload import WatchFilesReload

from agui_container.cli.command_line import main
from agui_container.cli.dev import watch
from agui_container.cli.failure import CommandFailed
from tests.requirements import requirement
from tests.server.test_embedding import AGENT, COMMAND, WAIT, answer_of
from tests.sockets.process import ServerProcess

DEV = (*COMMAND, "dev", "--port", "0", "--no-open")


@requirement("dev.reload")
def test_a_change_of_an_agent_is_served_on_the_same_port_and_the_thread_is_kept(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="before"))
    (tmp_path / ".venv").mkdir()
    with ServerProcess((*DEV, "app:agent"), tmp_path) as server:
        assert '"delta":"before"' in answer_of(server.port)
        (tmp_path / ".venv" / "ignored.py").touch()
        (tmp_path / "notes.txt").touch()
        (tmp_path / "app.py").write_text(AGENT.format(text="afterwards"))
        server.wait_for_port(starts=2)
        thread = httpx.get(f"http://127.0.0.1:{server.port}/threads/t1", timeout=WAIT).json()
        assert thread["messages"][-1]["content"] == "before"
        assert server.ports == [server.port] * 2
        (tmp_path / "app.py").write_text(AGENT.format(text="at last"))
        server.wait_for_port(starts=3)
    assert server.ports == [server.port] * 3
    assert (tmp_path / ".agui" / ".gitignore").read_text() == "*\n"


@requirement("dev.reload")
def test_a_request_waits_while_a_broken_agent_is_mended(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="whole"))
    with ServerProcess((*DEV, "app:agent"), tmp_path) as server:
        (tmp_path / "app.py").write_text("1 / 0")
        server.wait_for(lambda line: "cannot start: The module 'app' cannot be imported: ZeroDivisionError" in line)
        (tmp_path / "app.py").write_text(AGENT.format(text="mended"))
        assert '"delta":"mended"' in answer_of(server.port)


@requirement("dev.reload")
def test_a_change_of_the_settings_is_served(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="hello"))
    (tmp_path / "agui.toml").write_text('store = "memory"\nconsole_title = "Before"\n')
    with ServerProcess((*DEV, "app:agent"), tmp_path) as server:
        server.wait_for(lambda line: "memory, so a restart after a change loses them" in line)
        assert "Before" in httpx.get(f"http://127.0.0.1:{server.port}/", timeout=WAIT).text
        (tmp_path / "agui.toml").write_text('store = "memory"\nconsole_title = "After"\n')
        assert "After" in httpx.get(f"http://127.0.0.1:{server.wait_for_port(starts=2)}/", timeout=WAIT).text
    assert not (tmp_path / ".agui").exists()


@requirement("dev.page")
@pytest.mark.parametrize(("option", "is_opened"), [("--open", True), ("--no-open", False)])
def test_the_page_is_opened_unless_that_is_refused(option: str, is_opened: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a column
    (tmp_path / "app.py").write_text(AGENT.format(text="hello"))
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    options = ("dev", "app:agent", "--port", "0", option)
    with ServerProcess((*COMMAND, *options), tmp_path, BROWSER=str(browser)) as server:
        page = f"http://localhost:{server.port}/"
    assert (tmp_path / "opened").exists() is is_opened
    assert not is_opened or (tmp_path / "opened").read_text() == f"{page}\n"


@requirement("dev.reload")
def test_a_system_that_watches_no_more_files_ends_the_server_with_advice() -> None:
    class Full(WatchFilesReload):
        stops = 0

        def __init__(self) -> None:
            pass

        def run(self) -> None:
            raise OSError("OS file watch limit reached")

        def shutdown(self) -> None:
            self.stops += 1

    reloader = Full()
    with pytest.raises(CommandFailed, match=r"watch limit reached\. WATCHFILES_FORCE_POLLING=true"):
        watch(reloader)
    assert reloader.stops == 1


@requirement("dev.page")
def test_a_port_that_is_taken_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in os.environ if name.startswith("AGUI_")]:
        monkeypatch.delenv(name)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["dev", "--port", str(port), "--no-open"]) == 2
    shown = f"cannot listen on 127.0.0.1:{port}: Address already in use. --port 0 takes a free port.\n"
    assert capsys.readouterr().err == shown
