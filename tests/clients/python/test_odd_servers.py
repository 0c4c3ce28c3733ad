"""Streams that other servers may send: without numbers, with numbers of their own, cut short, malformed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from agui_client import AgentClientError, ConnectionLostError, Outcome, Retry, RunRefusedError, Session
from tests.ports import free_port

pytestmark = [pytest.mark.wire, pytest.mark.processes]

Json = dict[str, object]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n"
REFUSED = b"HTTP/1.1 422 Unprocessable\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
TEXT: list[Json] = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hello"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
]
FAST = Retry(initial_delay=0.01, give_up_after=30)


@asynccontextmanager
async def answering(body: Callable[[Json], bytes], answer: bytes = HEAD) -> AsyncIterator[tuple[str, list[Json]]]:
    inputs: list[Json] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        if "command" in asked:
            writer.write(REFUSED)
        else:
            inputs.append(asked)
            writer.write(answer + body(asked))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/agent", inputs


async def test_a_page_in_place_of_a_stream_is_a_refusal_and_not_asked_for_again() -> None:
    async with answering(lambda _: b"<h1>Sign in</h1>", PAGE) as (url, inputs), Session(url, retry=FAST) as session:
        with pytest.raises(RunRefusedError, match="status 200: <h1>Sign in</h1>") as refused:
            await session.send_text("hi").run()
    assert refused.value.code == "HTTP_200"
    assert len(inputs) == 1


def run_of(asked: Json, events: list[Json]) -> list[Json]:
    ids = {"threadId": asked["threadId"], "runId": asked["runId"]}
    return [{"type": "RUN_STARTED", **ids}, *events, {"type": "RUN_FINISHED", **ids}]


def frames(events: list[Json], numbers: Callable[[int], str]) -> bytes:
    return "".join(f"{numbers(at)}data: {json.dumps(event)}\n\n" for at, event in enumerate(events)).encode()


@pytest.mark.parametrize(
    "numbers",
    [
        lambda _: "",
        lambda at: f"id: {at}\n",
        lambda at: f"id: {at + 1}\n",
        lambda at: f"id: {1000 + 7 * at}\n",
        lambda _: "id: 1\n",
        lambda at: "id: 1\n" if at == 0 else "",
        lambda at: f"id: {1 + at * 2}\n",
        lambda at: f"id: event-{at}\n",
    ],
    ids=["none", "from 0", "from 1", "jumping", "the same", "the first only", "every other", "words"],
)
async def test_numbers_of_another_server_lose_no_event(numbers: Callable[[int], str]) -> None:
    async with answering(lambda asked: frames(run_of(asked, TEXT), numbers)) as (url, inputs):
        async with Session.start("hi", url=url, retry=FAST) as session:
            events = [event.type.value async for event in session.events()]
        assert events == ["RUN_STARTED", *(str(event["type"]) for event in TEXT), "RUN_FINISHED"]
        assert session.messages[-1].content == "hello"
        assert len(inputs) == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (lambda _: b"", ConnectionLostError),
        (lambda _: b'{"an": "answer"}', ConnectionLostError),
        (lambda asked: frames(run_of(asked, TEXT)[:-1], lambda _: ""), ConnectionLostError),
        (lambda _: b'data: {"type": "RUN_ERROR", "message": "no"}\n\n', RunRefusedError),
        (lambda _: b"data: hello\n\n", AgentClientError),
        (lambda _: b'data: {"type": "RUN_STARTED"}\n\n', AgentClientError),
    ],
    ids=["nothing", "JSON", "no end", "an error at once", "no JSON", "a malformed event"],
)
async def test_a_stream_that_is_no_run_is_an_error_and_is_not_repeated(
    body: Callable[[Json], bytes], error: type[AgentClientError]
) -> None:
    async with answering(body) as (url, inputs), Session.start("hi", url=url, retry=FAST) as session:
        with pytest.raises(error):
            await session.run()
        assert len(inputs) == 1


async def test_optional_fields_may_be_null() -> None:
    def nulls(asked: Json) -> bytes:
        begin, *events = run_of(asked, [{**event, "rawEvent": None} for event in TEXT])
        return frames([{**begin, "parentRunId": None, "timestamp": None}, *events], lambda _: "")

    async with answering(nulls) as (url, _), Session.start("hi", url=url) as session:
        await session.run()
    assert (session.outcome, session.messages[-1].content) == (Outcome.SUCCESS, "hello")


async def test_an_open_call_of_the_server_is_not_taken_for_a_client_tool() -> None:
    calls: list[Json] = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "theirs"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    async with answering(lambda asked: frames(run_of(asked, calls), lambda _: "")) as (url, inputs):
        async with Session.start("hi", url=url) as session:
            await session.run()
        assert session.pending_calls == []
        assert len(inputs) == 1


async def test_an_input_has_what_servers_before_1_0_require() -> None:
    answer = answering(lambda asked: frames(run_of(asked, TEXT), lambda _: ""))
    async with answer as (url, inputs), Session.start("hi", url=url, forwarded_props={"a": 1}) as session:
        await session.run()
    (asked,) = inputs
    assert asked["protocolVersion"] == "1.0"
    assert (asked["state"], asked["tools"], asked["context"], asked["forwardedProps"]) == ({}, [], [], {"a": 1})


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_server_that_is_not_there_is_named_within_the_timeout(scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}/run"
    async with Session.start("hello", url=url) as session:
        with pytest.raises(ConnectionLostError, match=rf"^No connection to {url} within 1 s: "):
            await session.run(timeout=1)
        with pytest.raises(ConnectionLostError, match=rf"^No connection to {url} within 1 s: "):
            async for _ in session.events(timeout=1):
                pass
