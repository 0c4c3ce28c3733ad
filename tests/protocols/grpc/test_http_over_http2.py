"""AG-UI over HTTP/2 in cleartext, as proxies send it, on the connections of gRPC."""

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest
from grpclib.protocol import Buffer, Stream
from h2.errors import ErrorCodes
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset
from starlette.types import Receive, Scope, Send

from agui_container.protocols.grpc import http_request
from tests.engine.doubles import WAIT
from tests.protocols.grpc.client import RUN
from tests.protocols.grpc.h2 import Raw, message, text
from tests.protocols.grpc.test_connections import start
from tests.server.sockets.process import ServerProcess, Servers
from tests.sse import TLS, events_of

pytestmark = pytest.mark.wire


class UnreadStream(Stream):
    closable = True

    def __init__(self) -> None:
        self.buffer = Buffer(lambda _: None)
        self.resets: list[ErrorCodes] = []

    async def send_data(self, data: bytes, end_stream: bool = False) -> None:  # noqa: FBT001, FBT002 - grpclib's
        await asyncio.Event().wait()

    def reset_nowait(self, error_code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        self.resets.append(error_code)


def run_input(run: str, said: str) -> bytes:
    messages = [{"id": "m1", "role": "user", "content": said}]
    return json.dumps({"threadId": f"thread-{run}", "runId": run, "messages": messages}).encode()


def text_of(body: bytes) -> str:
    return "".join(event["delta"] for event in events_of(body) if event["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.fixture
def directed(servers: Servers) -> ServerProcess:
    return servers(AGUI_ON_DISCONNECT="cancel")


@pytest.fixture
def client(directed: ServerProcess) -> Iterator[httpx.Client]:
    base = f"http://127.0.0.1:{directed.port}"
    with httpx.Client(base_url=base, http1=False, http2=True, timeout=WAIT, verify=TLS, trust_env=False) as client:
        yield client


def test_a_run_is_streamed_event_by_event(client: httpx.Client) -> None:
    with client.stream("POST", "/invocations", content=run_input("live-h2", "hold")) as response:
        assert (response.http_version, response.status_code) == ("HTTP/2", 200)
        assert response.headers["content-type"].startswith("text/event-stream")
        assert not {"connection", "transfer-encoding"} & response.headers.keys()
        pieces = response.iter_bytes()
        received = b""
        while b"TEXT_MESSAGE_CONTENT" not in received:
            received += next(pieces)
        assert b"RUN_FINISHED" not in received, "the run waits for another one"
        client.post("/invocations", content=run_input("release-h2", "release live-h2"))
        received += b"".join(pieces)
    assert [event["type"] for event in events_of(received)][-1] == "RUN_FINISHED"


def test_a_client_that_leaves_is_noticed(directed: ServerProcess, client: httpx.Client) -> None:
    with Raw(directed.port) as gone:
        stream = gone.request("POST", "/invocations")
        gone.data(stream, run_input("left-h2", "hold"), end=True)
        gone.until(DataReceived)
        gone.h2.reset_stream(stream, ErrorCodes.CANCEL)
        gone.ping()
        directed.wait_for(lambda line: "run=left-h2" in line and "cancelled" in line)
    with Raw(directed.port) as gone:
        stream = gone.request("POST", "/invocations")
        gone.data(stream, run_input("closed-h2", "hold"), end=True)
        gone.until(DataReceived)
    directed.wait_for(lambda line: "run=closed-h2" in line and "cancelled" in line)
    assert client.get("/ping").is_success


ANSWERS = [
    ("GET /ping?x=1", {}, 200),
    ("HEAD /ping", {}, 200),
    ("GET /n%C3%B6", {}, 404),
    ("DELETE /threads/none", {}, 404),
    ("GET /threads", {"origin": "https://evil.example"}, 403),
    ("POST /invocations", {"x-name": "J\u00f6rg"}, 400),
]


@pytest.mark.parametrize(("request_line", "headers", "status"), ANSWERS, ids=str)
def test_an_answer_is_that_of_http_1(
    client: httpx.Client, request_line: str, headers: dict[str, str], status: int
) -> None:
    method, path = request_line.split()
    named = httpx.Headers({"x-request-id": "r", **headers}, encoding="latin-1")
    first = httpx.request(method, client.base_url.join(path), headers=named, verify=TLS)
    second = client.request(method, path, headers=named)
    assert (first.status_code, second.status_code) == (status, status)
    assert (first.text, first.headers["content-type"]) == (second.text, second.headers["content-type"])


def test_a_body_may_be_as_large_as_over_http_1(client: httpx.Client) -> None:
    large = run_input("large-h2", "x" * 9_000_000)
    assert text_of(client.post("/invocations", content=large).content) != ""
    refused = client.post("/invocations", content=large + b" " * 5_000_000)
    assert refused.status_code == 413
    assert client.get("/ping").is_success


async def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_request, "STALLED_SECONDS", 0)
    received: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        received.append((await receive())["type"])

    stream = UnreadStream()
    await http_request.HttpRequest(stream, {"method": "GET"}).run(application)
    assert (received, stream.resets) == (["http.disconnect"], [ErrorCodes.INTERNAL_ERROR])


def test_a_call_and_a_request_share_a_connection(directed: ServerProcess) -> None:
    with Raw(directed.port) as both:
        call = both.call(RUN)
        both.data(call, message(start("hello")), end=True)
        request = both.request("GET", "/ping", end=True)
        assert both.status(call)[0] == "0"
        both.until(StreamEnded)
        assert both.body(request).startswith(b'{"status"')


def test_an_answer_before_the_end_of_a_body_ends_the_body(directed: ServerProcess) -> None:
    with Raw(directed.port) as early:
        stream = early.request("POST", "/nothing")
        early.data(stream, b"the beginning")
        reset = early.until(StreamReset)
        assert isinstance(reset, StreamReset)
        assert reset.error_code == ErrorCodes.NO_ERROR
        (answer,) = [event for event in early.events if isinstance(event, ResponseReceived)]
        assert text(answer.headers)[":status"] == "404"


def test_a_run_over_http_2_ends_before_the_server_does(servers: Servers) -> None:
    with ServerProcess() as stopping, Raw(stopping.port) as client:
        stream = client.request("POST", "/invocations")
        client.data(stream, run_input("stopped-h2", "hold"), end=True)
        while b"TEXT_MESSAGE_CONTENT" not in client.body(stream):
            client.read()
        stopping.term()
        assert client.goodbye() == ErrorCodes.NO_ERROR
        assert events_of(client.body(stream))[-1]["code"] == "SHUTTING_DOWN"
        assert stopping.wait() == 0
