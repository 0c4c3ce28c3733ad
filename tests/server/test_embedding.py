"""The application in somebody's own: mounted under a prefix, served by a script, started by the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from ag_ui.core import EventType, RunAgentInput, TextMessageContentEvent
from fastapi import FastAPI

from agui_container import Settings, create_app
from agui_container.agents.as_agent import AgentLoadError
from agui_container.cli.command_line import main
from agui_container.testing import run_agent
from tests.engine.doubles import ask
from tests.secret_search import search
from tests.websocket import socket_to

ROOT = Path(__file__).parents[2]
PREFIX = "/agents/tea"
WAIT = 120


async def teapot(request: RunAgentInput) -> AsyncIterator[str]:
    yield "short and "
    yield f"stout: {request.messages[-1].content}"


# --- mounted ----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    """A plain uvicorn around an application; gives its base URL."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, ws="websockets-sansio"))
    with server.capture_signals():
        config = server.config
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            await server.shutdown()


def outer(agents: FastAPI, **options: object) -> FastAPI:
    """Somebody's application with ours under a prefix."""
    app = FastAPI(**options)  # type: ignore[arg-type]
    app.mount(PREFIX, agents)
    return app


async def test_a_mounted_application_answers_under_its_prefix_without_its_lifespan() -> None:
    async with serving(outer(create_app(teapot, Settings()))) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get(f"{PREFIX}/ping")).json()["status"] == "Healthy"
        answer = await http.post(f"{PREFIX}/invocations", json=ask("t1", "r1"))
        assert '"delta":"short and ' in answer.text
        assert '"type":"RUN_FINISHED"' in answer.text
        again = await http.get(f"{PREFIX}/runs/r1/events")
        assert again.text.count("RUN_FINISHED") == 1
        assert (await http.get(f"{PREFIX}/threads/t1")).status_code == 200
        assert "<html" in (await http.get(f"{PREFIX}/")).text
        assert (await http.get("/ping")).status_code == 404


async def test_a_socket_works_under_a_prefix() -> None:
    async with serving(outer(create_app(teapot, Settings()))) as url:
        async with socket_to(url, f"{PREFIX}/ws") as socket:
            await socket.send(json.dumps(ask("t1", "r1")))
            types = [json.loads(await socket.recv())["type"]]
            while types[-1] != "RUN_FINISHED":
                types.append(json.loads(await socket.recv())["type"])
        assert types[0] == "RUN_STARTED"


async def test_a_refused_invocation_under_a_prefix_comes_with_the_status_of_the_settings() -> None:
    agents = create_app(teapot, Settings(error_status="stream"))
    async with serving(outer(agents)) as url, httpx.AsyncClient(base_url=url) as http:
        answer = await http.post(f"{PREFIX}/invocations", content=b"no json")
        assert (answer.status_code, "RUN_ERROR" in answer.text) == (200, True)


async def test_the_lifespan_of_a_mounted_application_can_be_handed_to_the_outer_one() -> None:
    agents = create_app(teapot, Settings())
    async with serving(outer(agents, lifespan=agents.router.lifespan_context)):
        assert agents.state.service.is_serving()
    assert agents.state.service.is_draining


async def test_a_mounted_application_says_so_while_its_store_cannot_be_reached(tmp_path: Path) -> None:
    agents = create_app(teapot, Settings.model_validate({"store": f"sqlite:///{tmp_path}/missing/agui.db"}))
    async with serving(outer(agents)) as url, httpx.AsyncClient(base_url=url) as http:
        answer = await http.get(f"{PREFIX}/ping")
        assert (answer.status_code, '"code":"STORE_UNAVAILABLE"' in answer.text) == (503, True)
    await agents.state.service.aclose()


def test_an_object_that_is_no_agent_is_refused_when_the_application_is_made() -> None:
    with pytest.raises(AgentLoadError, match="'int' is an object of type int"):
        create_app(7, Settings())


def test_a_reference_names_the_agent_in_place_of_the_settings() -> None:
    app = create_app("tests.server.test_embedding:teapot", Settings())
    assert app.state.service.capabilities.identity is not None


# --- the helper for tests ---------------------------------------------------------------------------------------------


async def test_the_helper_for_tests_collects_the_events_of_a_run() -> None:
    events = await run_agent(teapot, "handle")
    assert [event.type for event in (events[0], events[-1])] == [EventType.RUN_STARTED, EventType.RUN_FINISHED]
    text = "".join(event.delta for event in events if isinstance(event, TextMessageContentEvent))
    assert text == "short and stout: handle"


async def test_the_helper_for_tests_shows_how_a_run_failed() -> None:
    async def broken(_: RunAgentInput) -> AsyncIterator[str]:
        yield "so far"
        raise ValueError

    events = await run_agent(broken, RunAgentInput.model_validate(ask("t1", "r1")))
    assert events[-1].type == EventType.RUN_ERROR


# --- processes --------------------------------------------------------------------------------------------------------

AGENT = """
async def agent(input):
    yield "{text}"
"""

SCRIPT = """
from agui_container import Settings, serve


async def agent(input):
    yield "from a script"


serve(agent, Settings(host="127.0.0.1", port=0))
"""

LISTENING = re.compile(r"listening host=127\.0\.0\.1 port=(\d+)")


class Process:
    """A server process; ``ports`` are those that it has listened on."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.ports: list[int] = []
        self.process = process
        self._log = ""
        self._changed = threading.Condition()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            search(line, "the log of a server")
            if found := LISTENING.search(line):
                with self._changed:
                    self.ports.append(int(found[1]))
                    self._changed.notify_all()
            with self._changed:
                self._log += line
                self._changed.notify_all()

    def close(self) -> None:
        """Read the rest of what an ended process has logged."""
        self._watcher.join(WAIT)
        assert self.process.stderr
        self.process.stderr.close()

    def port(self, number: int = 1) -> int:
        """The port that it listens on after so many starts."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ports) >= number, WAIT)
        return self.ports[number - 1]

    def said(self, text: str) -> None:
        """Wait until it has printed a text."""
        with self._changed:
            assert self._changed.wait_for(lambda: text in self._log, WAIT)

    def answer(self, number: int = 1) -> str:
        """The events of a run."""
        url = f"http://127.0.0.1:{self.port(number)}/invocations"
        return httpx.post(url, json=ask("t1", "r1"), timeout=WAIT).text


@contextmanager
def start_server(folder: Path, *arguments: str, python: str = sys.executable, **env: str) -> Iterator[Process]:
    """Start a process. It is stopped after the block, and must exit with status 0."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    process = subprocess.Popen([python, *arguments], cwd=folder, env=clean | env, stderr=subprocess.PIPE, text=True)
    server = Process(process)
    try:
        yield server
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT) == 0
    finally:
        process.kill()
        process.wait()
        server.close()


def test_a_script_serves_its_own_agent(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SCRIPT)
    with start_server(tmp_path, "app.py") as server:
        assert '"delta":"from a script"' in server.answer()


COMMAND = ("-P", "-c", "import sys; from agui_container.__main__ import cli; sys.exit(cli())")
"""As the console script does it: without the current folder on the path."""


def test_the_arguments_of_the_command_win_over_the_environment(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AGENT.format(text="from the argument"))
    options = ("serve", "app:agent", "--host", "127.0.0.1", "--port", "0")
    with start_server(
        tmp_path, *COMMAND, *options, AGUI_AGENT="no:agent", AGUI_HOST="192.0.2.1", AGUI_PORT="1"
    ) as server:
        assert '"delta":"from the argument"' in server.answer()


def test_the_command_says_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agui_container", "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"agui-container \d+\.\d+\.\d+\n", done.stdout)


def test_an_abbreviated_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--por"]) == 2
    assert "--por" in capsys.readouterr().err
