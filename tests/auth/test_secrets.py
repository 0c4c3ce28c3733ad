"""Secrets in requests reach the agent, and are in no log, no error, no span and no store.

A server runs as it is deployed, under ``opentelemetry-instrument`` and on SQLite. Requests with planted secrets go over
SSE, WebSocket, gRPC and Roboto's API: valid ones, ones that fail in the agent, and ones that are refused.
"""

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx
import pytest
from websockets.exceptions import InvalidStatus

from agui_container.ports import session_label
from agui_container.protocols.gen import kontekst_pb2 as pb
from tests.auth.agents import HEADERS, digest
from tests.auth.issuer import issuer_process
from tests.auth.rpcs import call_rpc
from tests.engine.doubles import WAIT, ask
from tests.secret_search import planted, remember_token
from tests.server.sockets.client import is_last
from tests.server.sockets.process import ServerProcess
from tests.telemetry.collector import Collector
from tests.telemetry.test_server import COMMAND
from tests.websocket import receive_frame, receive_until, send, socket_to

pytestmark = pytest.mark.packages

PLANTED = {
    "workloadaccesstoken": planted("workload-token"),
    "x-amz-bedrock-agentcore-identity-wat": planted("identity-token"),
    "oauth2callbackurl": f"https://callback.example/{planted('callback')}",
    "x-api-key": planted("api-key"),
    "x-amzn-bedrock-agentcore-runtime-custom-key": planted("custom-key"),
    "cookie": f"session={planted('cookie')}",
    "proxy-authorization": f"Basic {planted('proxy')}",
}
SESSION = "s" * 40
TRACE = {"traceparent": f"00-{'c' * 32}-{'d' * 16}-01", "x-amzn-bedrock-agentcore-runtime-session-id": SESSION}


@dataclass
class LeakCheck:
    server: ServerProcess
    issuer: str
    store: Path
    collector: Collector
    secrets: set[str] = field(default_factory=lambda: {value.split("=")[-1] for value in PLANTED.values()})
    replies: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def token(self, **claims: str) -> str:
        """A token, whose signature counts as a secret."""
        token = httpx.get(f"{self.issuer}/token", params=claims, timeout=WAIT).text
        self.secrets |= {token, token.rpartition(".")[2]}
        return remember_token(token)

    def headers(self, token: str) -> dict[str, str]:
        return {**PLANTED, **TRACE, "authorization": f"Bearer {token}"}

    def leaks(self) -> list[str]:
        self.server.stop()
        places = {
            "log": "\n".join(self.server.log),
            "responses": "\n".join(self.replies),
            "telemetry": "\n".join(map(str, self.collector.received)),
            "store": "".join(path.read_bytes().decode("latin-1") for path in self.store.parent.glob("runs.db*")),
        }
        assert all(places.values())
        return [f"{secret} in {place}" for place, text in places.items() for secret in self.secrets if secret in text]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[LeakCheck]:
    """A server that asks for tokens, under ``opentelemetry-instrument`` and on SQLite."""
    store = tmp_path / "runs.db"
    with Collector() as collector, issuer_process() as issuer:
        settings = {
            "AGUI_AGENT": "tests.auth.agents:secretive_agent",
            "AGUI_AUTH": "jwt",
            "AGUI_AUTH_DISCOVERY_URL": f"{issuer}/.well-known/openid-configuration",
            "AGUI_AUTH_ALLOWED_AUDIENCE": "my-agent",
            "AGUI_LOG_LEVEL": "debug",
            "AGUI_ROBOTO": "on",
            "AGUI_STORE": f"sqlite:///{store}",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_PYTHON_LOGGING_AUTO_INSTRUMENTATION_ENABLED": "true",
        }
        with ServerProcess(COMMAND, **settings) as server:
            yield LeakCheck(server, issuer, store, collector)


async def over_http(scene: LeakCheck, token: str) -> None:
    """A run, a run that fails, a read and a session of Roboto's."""
    async with httpx.AsyncClient(base_url=scene.url, headers=scene.headers(token), timeout=WAIT) as http:
        for at, text in enumerate(("hello", "fail")):
            run = ask(thread=f"http-{at}", run=f"http-{at}", text=text)
            scene.replies += whole(await http.post("/invocations", json=run))
        scene.replies += whole(await http.get("/threads"))
        scene.replies += whole(await http.post("/invocations", content=b"{"))
        scene.replies += whole(await http.get("/v1/ai/threads/none"))


def whole(response: httpx.Response) -> list[str]:
    return [str(response.headers), response.text]


async def over_ws(scene: LeakCheck, token: str, *, is_subprotocol: bool) -> None:
    """A run and a run that fails, on one socket. A custom header comes in the query."""
    headers = scene.headers(token)
    name = "x-amzn-bedrock-agentcore-runtime-custom-key"
    path = f"/ws?{name}={headers.pop(name)}"
    offered = None
    if is_subprotocol:
        encoded = base64.urlsafe_b64encode(headers.pop("authorization").removeprefix("Bearer ").encode()).decode()
        scene.secrets.add(encoded.rstrip("="))
        offered = [f"base64UrlBearerAuthorization.{encoded.rstrip('=')}", "base64UrlBearerAuthorization"]
    try:
        socket = await socket_to(scene.url, path, additional_headers=headers, subprotocols=offered)
    except InvalidStatus as refusal:
        scene.replies += [str(refusal.response.headers), bytes(refusal.response.body).decode()]
        return
    async with socket:
        for text in ("hello", "fail"):
            run = f"ws-{is_subprotocol}-{text}"
            await send(socket, ask(thread=run, run=run, text=text))
            scene.replies += map(str, await receive_until(socket, is_last))
        await send(socket, "{")
        scene.replies.append(str(await receive_frame(socket)))


async def over_grpc(scene: LeakCheck, token: str) -> None:
    """A run of kontekst and one that fails, and a task that does not exist."""
    starts = [pb.RunCommand(start=pb.StartRunCommand(prompt=text)).SerializeToString() for text in ("hello", "fail")]
    calls = [("/kontekst.AgentService/Run", start) for start in starts]
    for path, request in [*calls, ("/roz.v1.AgentService/WatchTeam", b"\x0a\x04none")]:
        status, received = await asyncio.to_thread(call_rpc, scene.url, path, request, scene.headers(token))
        assert isinstance(status, grpc.StatusCode)
        scene.replies.append(received.decode("latin-1"))


async def test_no_secret_is_in_logs_errors_spans_or_the_store(scene: LeakCheck) -> None:
    valid = scene.token(sub="alice")
    refused = [scene.token(sub="alice", aud="another"), f"{valid[:-4]}AAAA", planted("nonsense")]
    scene.secrets |= {*refused}
    for token in (valid, *refused):
        await over_http(scene, token)
        await over_ws(scene, token, is_subprotocol=False)
        await over_ws(scene, token, is_subprotocol=True)
        await over_grpc(scene, token)
    expected = digest(scene.headers(valid))
    assert sum(expected in reply for reply in scene.replies) >= 8, "the agent has not seen the headers"
    scene.server.wait_for(lambda line: "agent raised an exception" in line)
    scene.server.wait_for(lambda line: "called by Caller" in line)
    scene.collector.wait_for(lambda: [span for span in scene.collector.spans if span.name == "invoke_agent"])
    assert scene.leaks() == []
    log = "\n".join(scene.server.log)
    assert f"sessionId={session_label(SESSION)}" in log
    assert SESSION not in log


def test_the_planted_headers_are_those_that_an_agent_may_see() -> None:
    hidden = {"cookie", "proxy-authorization"}
    assert PLANTED.keys() - hidden == {*HEADERS} - {"authorization"}
