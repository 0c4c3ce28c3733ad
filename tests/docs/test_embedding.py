"""The programs in the guide to agents are servers: a script, and an application with ours under a prefix."""

import sys
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.docs.documents import GUIDES
from tests.engine.doubles import ask
from tests.server.sockets.process import ServerProcess
from tests.server.test_embedding import answer_of, serving

pytestmark = [pytest.mark.wire, pytest.mark.processes]
SCRIPT, MOUNTED = (block.text for block in GUIDES["agents"].blocks if "listens" in block.marks)


def test_the_script_serves_its_agent(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    with ServerProcess((sys.executable, "script.py"), tmp_path) as server:
        assert '"delta":"Hello from a script."' in answer_of(server.port)


async def test_the_application_serves_the_agent_under_its_prefix_and_ends_it_with_its_own_lifespan() -> None:
    namespace: dict[str, object] = {"__name__": "my_app"}
    exec(MOUNTED, namespace)  # noqa: S102 - the test is that a reader may run it
    app, agents = namespace["app"], namespace["agents"]
    assert isinstance(app, FastAPI)
    assert isinstance(agents, FastAPI)
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        path = (await http.get("/")).json()["agent"]
        answer = await http.post(f"{path}/invocations", json=ask("t1", "r1"))
        assert '"delta":"Hello from a prefix."' in answer.text
    assert agents.state.service.is_draining
