"""A server that serves Roboto's sessions, and the releases of Roboto's package that are pointed at it."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from agui_container.main import build_app
from agui_container.settings import Settings
from tests.behaviour.server import serving as in_process
from tests.engine.doubles import Json
from tests.server.sockets.process import ROOT, ServerProcess, serving
from tests.sse import http_client

SECONDS = 400.0
ASK_FOR_THE_TIME = '[{"tool_pattern": "current_time", "policy": "ask"}]'
SKILL_WORDS = 100


@dataclass(frozen=True)
class Release:
    """One release of the package, in a folder of ``.venv``."""

    name: str
    port: int

    @property
    def bin(self) -> Path:
        return ROOT / ".venv" / self.name / "bin"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROBOTO", "PYTHON"))}
        return {**kept, "ROBOTO_SERVICE_ENDPOINT": f"http://127.0.0.1:{self.port}", "ROBOTO_API_KEY": "any"}

    def play(self, scenario: str) -> Json:
        done = subprocess.run(
            [self.bin / "python", "-m", "tests.protocols.roboto.scenarios", scenario],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found: Json = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture(scope="session")
def roboto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server, as a process. It has a skill, a model to choose, and a tool that waits for an approval."""
    skill = tmp_path_factory.mktemp("skills") / "greet" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text(f"---\nname: greet\ndescription: Be kind.\n---\n\n{SKILL_WORDS * 'kindly '}\n")
    choices = {"models": "advanced=offline", "trust_instructions": "on", "tool_policy": ASK_FOR_THE_TIME}
    with serving(roboto="on", skills=str(skill.parents[1]), **choices) as server:
        yield server


@pytest.fixture(params=["roboto-oldest", "."], ids=["oldest", "newest"])
def release(request: pytest.FixtureRequest, roboto_server: ServerProcess) -> Release:
    """Each release. ``make test-all`` installs them."""
    return Release(request.param, roboto_server.port)


@dataclass(frozen=True)
class Api:
    http: httpx.AsyncClient
    prefix: str = "/v1/ai/threads"

    async def ask(self, method: str, path: str = "", body: object = None, **headers: str) -> httpx.Response:
        """One request. Names of headers are written with ``_``."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, self.prefix + path, json=body, headers=sent, timeout=SECONDS)

    async def data(self, method: str, path: str = "", body: object = None, **headers: str) -> Json:
        """Send a request and return ``data`` of its response."""
        answer = await self.ask(method, path, body, **headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        found: Json = answer.json()["data"]
        return found

    async def error(self, method: str, path: str = "", body: object = None) -> tuple[int, str, str]:
        answer = await self.ask(method, path, body)
        error = answer.json()["error"]
        assert sorted(error) == ["error_code", "message"]
        return answer.status_code, error["error_code"], error["message"]

    async def start(self, text: str, **fields: object) -> Json:
        return await self.data("POST", "", {"messages": [{"role": "user", "content": [{"text": text}]}], **fields})

    async def send(self, record: Json, text: str, **fields: object) -> Json:
        body = {"message": {"role": "user", "content": [{"text": text}]}, **fields}
        await self.data("POST", f"/{record['thread_id']}/messages", body)
        return {**record, "status": "roboto_turn"}

    async def say(self, held: Json, text: str, **fields: object) -> Json:
        return await self.finished(await self.send(held, text, **fields))

    async def delta(self, record: Json) -> Json:
        return await self.data("GET", f"/{record['thread_id']}/delta?next_token={record['continuation_token']}")

    async def finished(self, record: Json) -> Json:
        """The last delta of a turn, and the record that a client would hold."""
        held = {**record, "messages": list(record["messages"])}
        while held["status"] == "roboto_turn":
            apply(held, await self.delta(held))
        return held


def apply(held: Json, delta: Json) -> None:
    """Put a delta to what a client holds, as Roboto's package does."""
    if delta["reset_from_message_sequence_num"] is not None:
        del held["messages"][delta["reset_from_message_sequence_num"] :]
    for at, message in sorted((int(at), message) for at, message in delta["messages_by_idx"].items()):
        if at < len(held["messages"]):
            old = held["messages"][at]
            held["messages"][at] = {**message, "content": old["content"] + message["content"]}
        else:
            held["messages"].append(message)
    changed = {name: delta[name] for name in ("status", "title", "goals") if delta[name] is not None}
    held.update(changed, continuation_token=delta["continuation_token"])


@asynccontextmanager
async def serving_api(**settings: object) -> AsyncIterator[Api]:
    app = build_app(Settings.model_validate({"roboto": True, **settings}))
    async with in_process(app) as url, http_client(url) as http:
        yield Api(http)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving_api() as found:
        yield found
