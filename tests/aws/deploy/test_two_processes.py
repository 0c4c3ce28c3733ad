"""The image with two processes of examples/two_processes: an agent in an environment of its own, and the server."""

import os
import signal
import sys
from pathlib import Path

from tests.docs.documents import ROOT
from tests.ports import free_port
from tests.server.sockets.process import ServerProcess
from tests.server.test_embedding import answer_of

FOLDER = ROOT / "examples" / "two_processes"

AGENT = """
import os
from contextlib import asynccontextmanager
from pathlib import Path

from ag_ui.core import RunAgentInput
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

app = FastAPI()
Path("agent.pid").write_text(str(os.getpid()))


@app.post("/agent")
async def agent(body: RunAgentInput):
    async def events():
        yield f'data: {{"type":"RUN_STARTED","threadId":"{body.thread_id}","runId":"{body.run_id}"}}\\n\\n'
        yield 'data: {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"from the other"}\\n\\n'
        yield f'data: {{"type":"RUN_FINISHED","threadId":"{body.thread_id}","runId":"{body.run_id}"}}\\n\\n'
    return StreamingResponse(events(), media_type="text/event-stream")
"""


def start(folder: Path) -> ServerProcess:
    (folder / "crew_server.py").write_text(AGENT)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {"AGENT_PYTHON": sys.executable, "AGENT_PORT": str(free_port()), "PATH": path}
    return ServerProcess(("bash", str(FOLDER / "start.sh")), folder, **variables)


def test_the_server_answers_with_the_agent_of_the_other_process_and_both_end_with_a_signal(tmp_path: Path) -> None:
    with start(tmp_path) as image:
        assert '"delta":"from the other"' in answer_of(image.port)
        image.stop()
    assert not is_running(agent_of(tmp_path))


def test_the_image_ends_when_the_agent_does(tmp_path: Path) -> None:
    with start(tmp_path) as image:
        assert "from the other" in answer_of(image.port)
        os.kill(agent_of(tmp_path), signal.SIGKILL)
        assert image.wait() == 128 + signal.SIGKILL


def agent_of(folder: Path) -> int:
    return int((folder / "agent.pid").read_text())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
