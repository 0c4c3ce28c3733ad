"""The application in somebody's own: mounted under a prefix, served by a script, started by the command line."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx
import pytest
import uvicorn
from ag_ui.core import RunAgentInput
from fastapi import FastAPI

from agui_container import Settings, create_app
from tests.behaviour.server import listening
from tests.engine.doubles import ask
from tests.websocket import socket_to

pytestmark = pytest.mark.wire

PREFIX = "/agents/tea"
WAIT = 120


async def teapot(request: RunAgentInput) -> AsyncIterator[str]:
    yield "short and "
    yield f"stout: {request.messages[-1].content}"


def serving(app: FastAPI) -> AbstractAsyncContextManager[str]:
    """Serve an application by a plain uvicorn; gives the base URL."""
    return listening(app, uvicorn.Config(app, log_config=None, ws="websockets-sansio"))


def outer(agents: FastAPI, **options: object) -> FastAPI:
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


AGENT = """
async def agent(input):
    yield "{text}"
"""


def answer_of(port: int) -> str:
    return httpx.post(f"http://127.0.0.1:{port}/invocations", json=ask("t1", "r1"), timeout=WAIT).text


COMMAND = (sys.executable, "-P", "-c", "import sys; from agui_container.__main__ import cli; sys.exit(cli())")
"""As the console script does it: without the current folder on the path."""
