"""Requests that offer HTTP/2, as curl's ``--http2`` and Java's ``HttpClient`` send them, are answered as any others."""

import asyncio
import json
from pathlib import Path

import pytest

from agui_container.main import create_app
from agui_container.server.uvicorn_protocols import HttpProtocol
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import agent_of, ask
from tests.server.doubles import UPGRADE, EchoingApp, RecordingTransport, connect, until
from tests.sse import events_of

OFFER = (
    b"Connection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
)
POST = b"POST /a?b=c HTTP/1.1\r\nHost: here\r\nX-Own: 1\r\n" + OFFER
BODIES = {
    "length": b"Content-Length: 9\r\n\r\nthe body.",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n4\r\nthe \r\n5\r\nbody.\r\n0\r\n\r\n",
}

JAVA = """
import java.net.URI;
import java.net.http.*;

public class Main {
    public static void main(String[] arguments) throws Exception {
        var body = HttpRequest.BodyPublishers.ofString(arguments[1]);
        var request = HttpRequest.newBuilder(URI.create(arguments[0])).POST(body).build();
        System.out.print(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""


@pytest.mark.parametrize("framing", BODIES)
@pytest.mark.parametrize("piece", [1, 50, 10_000])
async def test_the_body_of_a_request_with_an_offer_is_read(piece: int, framing: str) -> None:
    transport, app = RecordingTransport(), EchoingApp()
    connection = connect(HttpProtocol, app, transport)
    sent = POST + BODIES[framing]
    for start in range(0, len(sent), piece):
        connection.data_received(sent[start : start + piece])
    await until(lambda: transport.written.endswith(b"the body."))
    [scope] = app.scopes
    headers = dict(scope["headers"])
    assert (scope["method"], scope["raw_path"], scope["query_string"]) == ("POST", b"/a", b"b=c")
    assert (headers[b"host"], headers[b"x-own"], headers[b"connection"]) == (b"here", b"1", b"keep-alive")
    assert headers.keys().isdisjoint((b"upgrade", b"http2-settings"))
    assert not transport.is_closing()
    connection.connection_lost(None)


async def test_each_request_of_one_read_may_have_an_offer() -> None:
    transport, app = RecordingTransport(), EchoingApp()
    connection = connect(HttpProtocol, app, transport)
    connection.data_received((POST + BODIES["length"]) * 10)
    await until(lambda: transport.written.count(b"the body.") == 10)
    connection.connection_lost(None)


async def test_an_offer_of_several_protocols_is_no_websocket() -> None:
    transport, app = RecordingTransport(), EchoingApp()
    connection = connect(HttpProtocol, app, transport)
    connection.data_received(UPGRADE.replace(b"upgrade: websocket", b"upgrade: h2c, websocket") + b"\r\n")
    await until(lambda: transport.written.startswith(b"HTTP/1.1 200 "))
    connection.connection_lost(None)


async def run_client(*command: str) -> list[str]:
    """Run a client that prints an event stream. Return the types of its events."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return [event["type"] for event in events_of(output)]


@pytest.mark.wire
async def test_curl_that_offers_http2_gets_its_run() -> None:
    async with serving(create_app(agent_of("hi"), Settings())) as url:
        types = await run_client("curl", "-sN", "--http2", f"{url}/invocations", "-d", json.dumps(ask()))
    assert (types[0], types[-1]) == ("RUN_STARTED", "RUN_FINISHED")


@pytest.mark.other_language
async def test_a_java_client_with_its_defaults_gets_its_run(tmp_path: Path) -> None:
    (tmp_path / "Main.java").write_text(JAVA)
    async with serving(create_app(agent_of("hi"), Settings())) as url:
        types = await run_client("java", str(tmp_path / "Main.java"), f"{url}/invocations", json.dumps(ask()))
    assert (types[0], types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
