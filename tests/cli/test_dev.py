"""``agui dev``: restarts on changes, one port, threads that survive, and the page."""

from pathlib import Path

import httpx
import pytest

from tests.engine.doubles import ask
from tests.server.sockets.process import ServerProcess
from tests.server.test_embedding import AGENT, COMMAND, WAIT, answer_of

pytestmark = [pytest.mark.wire, pytest.mark.processes]

DEV = (*COMMAND, "dev", "--port", "0", "--no-open")
WAITS = "waiting for a change of a file, to start again"
WAITING_AGENT = "import asyncio\nasync def agent(input):\n    yield 'waits'\n    await asyncio.Event().wait()\n"


def test_a_change_of_an_agent_is_served_on_the_same_port_and_the_thread_is_kept(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="before"))
    (tmp_path / ".venv").mkdir()
    with ServerProcess((*DEV, "app:agent"), tmp_path) as server:
        assert '"delta":"before"' in answer_of(server.port)
        (tmp_path / ".venv" / "ignored.py").touch()
        (tmp_path / "notes.txt").touch()
        (tmp_path / "app.py").write_text(WAITING_AGENT)
        server.wait_for_port(starts=2)
        thread = httpx.get(f"http://127.0.0.1:{server.port}/threads/t1", timeout=WAIT).json()
        assert thread["messages"][-1]["content"] == "before"
        assert server.ports == [server.port] * 2
        with httpx.stream("POST", f"http://127.0.0.1:{server.port}/invocations", json=ask("t2"), timeout=WAIT) as run:
            lines = run.iter_lines()
            next(line for line in lines if '"delta":"waits"' in line)
            (tmp_path / "app.py").write_text(AGENT.format(text="at last"))
            assert '"message":"restarted: app.py changed"' in "".join(lines)
        server.wait_for_port(starts=3)
    assert server.ports == [server.port] * 3
    assert (tmp_path / ".agui" / ".gitignore").read_text() == "*\n"


def test_the_page_shows_why_an_agent_cannot_be_loaded_until_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="whole"))
    with ServerProcess((*DEV, "app:agent"), tmp_path) as server:
        (tmp_path / "app.py").write_text("1 / 0")
        server.wait_for(lambda line: "cannot start: The module 'app' cannot be imported: ZeroDivisionError" in line)
        server.wait_for(lambda line: line == WAITS)
        page = httpx.get(f"http://127.0.0.1:{server.port}/", headers={"Accept": "text/html"}, timeout=WAIT)
        for shown in (page.text, answer_of(server.port)):
            assert "The module 'app' cannot be imported" in shown
            assert "app.py" in shown
            assert "ZeroDivisionError: division by zero" in shown
        (tmp_path / "app.py").write_text(AGENT.format(text="mended"))
        server.wait_for_port(starts=2)
        assert '"delta":"mended"' in answer_of(server.port)


def test_a_change_of_the_settings_is_served(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="hello"))
    (tmp_path / "agui.toml").write_text('store = "memory"\nconsole_title = "Before"\n')
    with ServerProcess((*DEV, "app:agent"), tmp_path) as server:
        server.wait_for(lambda line: "memory, so a restart after a change loses them" in line)
        assert "Before" in httpx.get(f"http://127.0.0.1:{server.port}/", timeout=WAIT).text
        (tmp_path / "agui.toml").write_text('store = "memory"\nconsole_title = "After"\n')
        assert "After" in httpx.get(f"http://127.0.0.1:{server.wait_for_port(starts=2)}/", timeout=WAIT).text
        (tmp_path / "agui.toml").write_text('store = "sqlite:///missing/store.db"\n')
        server.wait_for(lambda line: line == WAITS)
        assert "AGUI_STORE: there is no folder missing" in answer_of(server.port)
    assert not (tmp_path / ".agui").exists()


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
