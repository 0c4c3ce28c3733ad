"""The format of the response to a request. Nothing else depends on it."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from ag_ui.core import CustomEvent, RunAgentInput, StateSnapshotEvent

from agui_container.ports import Item
from agui_container.protocol.wire.protobuf import encoder
from agui_container.transports import event_stream
from agui_container.transports.formats import PROTOBUF, PROTOBUF_BYTES, accepts_protobuf
from tests.behaviour.over_sse import OverSse
from tests.conftest import Serve
from tests.engine.doubles import Json, ask, eventually, forever, wait_for_event
from tests.protocol.protobuf_decoder import event, kind, messages
from tests.requirements import requirement
from tests.sse import http_client
from tests.transports.responses import brief, get, post, refusal_event

ASKED = {"accept": f"text/event-stream, {PROTOBUF}"}

ACCEPT = {
    "": False,
    "*/*": False,
    "*/*;q=0.1": False,
    "text/event-stream": False,
    "application/json": False,
    "application/vnd.ag-ui.event": False,
    "application/vnd.ag-ui.event+protobuf": False,
    PROTOBUF: True,
    PROTOBUF.upper(): True,
    f"{PROTOBUF}, text/event-stream": True,
    f"text/event-stream, {PROTOBUF}": True,
    f"text/event-stream;q=1, {PROTOBUF};q=0.1": True,
    f"text/event-stream , {PROTOBUF} ; q=0.001": True,
    f"text/event-stream,{PROTOBUF};q=0": False,
    f"{PROTOBUF};q=0.000": False,
    f"{PROTOBUF};q=much": False,
    f"{PROTOBUF};q=nan": False,
    f"{PROTOBUF};v=2": False,
    f"{PROTOBUF};v=2, {PROTOBUF};q=0.5": True,
    f"{PROTOBUF};": True,
    "application/*": True,
    "application/*;q=0": False,
    f"application/*, {PROTOBUF};q=0": False,
    f"application/*;q=0, {PROTOBUF}": True,
    f"*/*, {PROTOBUF};q=0": False,
    f";, ,{PROTOBUF}": True,
}


@requirement("binary.accept")
@pytest.mark.parametrize(("accept", "binary"), ACCEPT.items())
def test_accept_decides(accept: str, binary: bool) -> None:  # noqa: FBT001 - a table
    assert accepts_protobuf(accept) is binary


def types(response: httpx.Response) -> list[str]:
    """Return the types of a body's frames."""
    assert response.headers["content-type"] == PROTOBUF
    assert response.headers["vary"] == "Accept"
    return [kind(message) for message in messages(response.content)]


# --- every stream ---


@requirement("binary.accept")
async def test_runs_commands_and_replays_come_as_frames(serve: Serve) -> None:
    client, _ = await serve(brief)
    whole = ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    response = await post(client, ask(), ASKED)
    assert types(response) == whole
    assert response.headers["cache-control"] == "no-cache, no-transform"
    attach = {"command": {"type": "attach", "runId": "r1"}}
    assert (await post(client, attach, ASKED)).content == response.content
    assert types(await post(client, {"command": {"type": "ping"}}, ASKED)) == whole
    assert types(await get(client, "/runs/r1/events?after=1", ASKED)) == whole[1:]
    assert types(await get(client, "/runs/r1/events", {**ASKED, "last-event-id": "2"})) == whole[2:]


@requirement("binary.accept")
@pytest.mark.parametrize("accept", [None, "*/*", "text/event-stream", f"{PROTOBUF};q=0"])
async def test_everybody_else_gets_sse(serve: Serve, accept: str | None) -> None:
    client, _ = await serve(brief)
    async with http_client(client.url) as http:
        request = http.build_request("POST", "/invocations", content=json.dumps(ask()))
        del request.headers["accept"]
        request.headers.update({} if accept is None else {"accept": accept})
        response = await http.send(request)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.content.count(b"data: ") == 3


@requirement("binary.accept")
async def test_two_accept_headers_are_one(serve: Serve) -> None:
    client, _ = await serve(brief)
    async with http_client(client.url) as http:
        headers = [("accept", "text/event-stream"), ("accept", PROTOBUF)]
        response = await http.post("/invocations", content=json.dumps(ask()), headers=headers)
    assert len(types(response)) == 3


# --- refusals ---


@requirement("binary.refusal")
async def test_a_refusal_with_an_error_status_is_text(serve: Serve) -> None:
    client, _ = await serve(brief)
    response = await post(client, b"{", ASKED)
    assert (response.status_code, refusal_event(response)["code"]) == (400, "VALIDATION_ERROR")


@requirement("binary.refusal")
@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [(b"{", {}, "VALIDATION_ERROR"), (json.dumps(ask()).encode(), {"origin": "http://evil.example"}, "ACCESS_DENIED")],
)
async def test_a_refusal_in_the_stream_is_a_frame(
    serve: Serve, body: bytes, headers: dict[str, str], code: str
) -> None:
    client, _ = await serve(brief, error_status="stream")
    response = await post(client, body, {**ASKED, **headers})
    assert response.status_code == 200
    assert types(response) == ["RUN_ERROR"]
    assert event(response.content[4:]).code == code


# --- readers ---


async def stream(client: OverSse, http: httpx.AsyncClient, body: Json, **headers: str) -> httpx.Response:
    """Return a response whose body has not been sent."""
    asked = {**ASKED, **headers}
    request = http.build_request("POST", "/invocations", content=json.dumps(body), headers=asked)
    return await http.send(request, stream=True)


@requirement("binary.once")
@pytest.mark.parametrize(("characters", "is_on_loop"), [(10, True), (PROTOBUF_BYTES, False)])
async def test_events_are_encoded_as_protobuf_for_its_readers_only(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, characters: int, *, is_on_loop: bool
) -> None:
    threads: list[int] = []
    real = encoder.encode_frame

    def frame(data: bytes) -> bytes:
        threads.append(threading.get_ident())
        return real(data)

    async def state(_: RunAgentInput) -> AsyncIterator[Item]:
        yield StateSnapshotEvent(snapshot=characters * "x")

    monkeypatch.setattr(encoder, "encode_frame", frame)
    client, _ = await serve(state)
    await post(client, ask())
    assert threads == []
    bodies = {(await post(client, ask(), ASKED)).content for _ in range(3)}
    assert len(bodies) == 1
    assert ({*threads} == {threading.get_ident()}) is is_on_loop


@requirement("binary.leave")
async def test_a_run_ends_with_its_last_reader(serve: Serve) -> None:
    gone = asyncio.Event()

    async def talk(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    client, _ = await serve(talk, on_disconnect="cancel")
    async with http_client(client.url) as http:
        response = await stream(client, http, ask())
        await anext(response.aiter_bytes())
    await wait_for_event(gone)


@requirement("binary.leave")
@pytest.mark.parametrize("accept", [PROTOBUF, "text/event-stream"])
async def test_a_reader_that_takes_nothing_is_let_go(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    async def flood(_: RunAgentInput) -> AsyncIterator[Item]:
        for _number in range(200):
            yield CustomEvent(name="n", value="x" * 100_000)

    monkeypatch.setattr(event_stream, "STALLED_SECONDS", 0.2)
    client, _ = await serve(flood, on_disconnect="continue")
    async with http_client(client.url) as http:
        await stream(client, http, ask(), accept=accept)
        await eventually(lambda: client.service.readers.open_count == 0)
    assert len((await get(client, "/runs/r1/events?after=200", ASKED)).content) > 0


@requirement("binary.leave")
async def test_silence_stays_silent_and_a_drain_ends_it(serve: Serve) -> None:
    client, _ = await serve(forever, keepalive=0.01)
    async with http_client(client.url) as http:
        response = await stream(client, http, ask())
        await asyncio.sleep(0.1)
        await client.service.drain(0)
        body = await response.aread()
    assert [kind(message) for message in messages(body)][-1] == "RUN_ERROR"


@requirement("binary.once")
def test_a_server_loads_protobuf_only_for_those_who_ask() -> None:
    create = "import sys; from agui_container.main import *; build_app(Settings()); "
    code = create + "print('google.protobuf' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout.strip() == "False"
