"""The counts that make speed: encodings, writes, imports. No timings: those are for ``make bench``."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from orjson import dumps
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core import chunks, stretch
from app.core.encoder import encode
from app.core.fold import Transcript
from app.core.stretch import END
from app.engine import funnel, run
from app.engine.fairness import BURST
from app.main import create_app
from app.ports import Item, RunContext
from app.settings import Settings
from tests.engine.doubles import WAIT, ask, asking, caller, envelopes, make_service

ROOT = Path(__file__).parents[2]
DELTAS = 6 * BURST
AROUND = 4
"""RUN_STARTED, TEXT_MESSAGE_START, TEXT_MESSAGE_END, RUN_FINISHED."""


async def talker(_: RunAgentInput) -> AsyncIterator[Item]:
    """An agent that never waits."""
    for _number in range(DELTAS):
        yield "hello world, "


# --- encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readers", [1, 5])
async def test_an_event_is_encoded_once_whatever_the_number_of_readers(
    monkeypatch: pytest.MonkeyPatch, readers: int
) -> None:
    encoded: list[bytes] = []
    bursts = 0

    def counted(event: BaseEvent) -> bytes:
        encoded.append(encode(event))
        return encoded[-1]

    def dumped(texts: str | list[str], option: int | None = None) -> bytes:
        """What goes on: one text, or those of a burst at once."""
        nonlocal bursts
        bursts += 1
        encoded.extend(dumps(text) + END for text in ([texts] if isinstance(texts, str) else texts))
        return dumps(texts, option=option)

    monkeypatch.setattr(stretch, "dumps", dumped)
    monkeypatch.setattr(chunks, "encode", counted)
    monkeypatch.setattr(funnel, "encode", counted)
    monkeypatch.setattr(run, "encode", counted)
    service = make_service(talker)
    first = service.start(asking(), caller())
    others = [await service.attach(caller(), "t1", "r1", 0) for _ in range(readers - 1)]
    read = await asyncio.gather(*map(envelopes, (first, *others)))
    assert [len(every) for every in read] == [DELTAS + AROUND] * readers
    assert len(encoded) == len(read[0])
    assert bursts <= DELTAS // BURST + 1
    for envelope in read[0]:
        encoded.remove(next(data for data in encoded if envelope.data.endswith(data)))


# --- writes -----------------------------------------------------------------------------------------------------------


async def written(path: str, body: bytes, agent: object = talker, *, twice: bool = False) -> list[bytes]:
    """The writes of a response; ``twice`` reads the run again once it has ended, and gives those writes."""
    service = make_service(agent)
    app = create_app(Settings(), service)
    await service.open()
    async with asyncio.timeout(WAIT):
        writes = await respond(app, "POST", path, body)
        return await respond(app, "GET", "/runs/r1/events", b"") if twice else writes


async def respond(app: ASGIApp, method: str, path: str, body: bytes) -> list[bytes]:
    """What an ASGI application sends, each ``send`` with bytes in it counted as the write that it becomes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    writes: list[bytes] = []
    done = asyncio.Event()

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            writes.append(message["body"])
            if not message["more_body"]:
                done.set()

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"threadId=t1",
        "headers": [],
    }
    await app(scope, receive, send)
    return writes


async def test_what_is_ready_leaves_in_one_write() -> None:
    writes = await written("/invocations", json.dumps(ask()).encode())
    assert b"".join(writes).count(b"\n\n") == DELTAS + AROUND
    assert len(writes) <= DELTAS // BURST + 2


async def test_what_a_tool_says_while_the_agent_waits_leaves_in_one_write() -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async def tool() -> None:
            for number in range(BURST):
                ctx.emit(f"{number} of them")

        yield TextMessageStartEvent(message_id="m1")
        await asyncio.create_task(tool())

    writes = await written("/invocations", json.dumps(ask()).encode(), agent)
    assert [said for write in writes if (said := write.count(b" of them"))] == [BURST]


async def test_little_stands_between_the_loop_and_an_agent_and_between_a_token_and_its_server() -> None:
    to_agent, to_server = list[str](), list[str]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "the first words open the message"
        yield "the second tell that it goes on"
        await asyncio.sleep(0)
        to_agent.extend(standing(sys._getframe(1)))
        yield "a token that comes alone"
        await asyncio.sleep(0)

    class Connection:
        def __init__(self, send: Send) -> None:
            self._send = send

        async def send(self, message: Message) -> None:
            await self._send(message)

        def write_piece(self, body: bytes) -> bool:
            if b"alone" in body:
                to_server.extend(standing(sys._getframe(1)))
            return False

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, Connection(send).send)

    service = make_service(agent)
    app = create_app(Settings(), service)
    await service.open()
    async with asyncio.timeout(WAIT):
        await respond(watched, "POST", "/invocations", json.dumps(ask()).encode())
    assert to_agent == ["Run._main", "RunLog.burst", "Stepwise.__next__"]
    assert to_server == ["RunStream.take", "Cursor.deliver", "RunLog.burst", "Stepwise.__next__"]


def standing(frame: FrameType | None) -> Iterator[str]:
    """Whose frames stand there, from this one to the event loop's."""
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(ROOT / "app"):
        yield frame.f_code.co_qualname
        frame = frame.f_back


async def test_a_run_that_is_read_again_leaves_in_one_write_and_its_end_when_that_is_taken() -> None:
    writes = await written("/invocations", json.dumps(ask()).encode(), twice=True)
    assert [write.count(b"\n\n") for write in writes] == [DELTAS + AROUND, 0]


async def test_the_end_of_a_stream_leaves_with_its_last_events() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "all of it"

    first, last = await written("/invocations", json.dumps(ask()).encode(), agent)
    assert (first.count(b"\n\n"), last.count(b"\n\n")) == (1, AROUND)


async def test_the_first_event_is_written_two_turns_of_the_loop_after_its_request() -> None:
    turns, written_at = 0, list[int]()
    loop = asyncio.get_running_loop()

    def count() -> None:
        nonlocal turns
        turns += 1
        if not written_at:
            loop.call_soon(count)

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if message.get("body"):
                written_at.append(turns)
            await send(message)

        await app(scope, receive, noting)

    service = make_service(talker)
    app = create_app(Settings(), service)
    await service.open()
    loop.call_soon(count)
    async with asyncio.timeout(WAIT):
        await respond(told, "POST", "/invocations", json.dumps(ask()).encode())
    assert written_at[0] == 2  # the run's own, which takes the thread, and that of the request, which hears of it


# --- messages ---------------------------------------------------------------------------------------------------------


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of Python some work takes."""
    lines = 0

    def counted(*_: object) -> Any:  # noqa: ANN401 - itself
        nonlocal lines
        lines += 1
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def lines_of_calls(count: int) -> int:
    """Those that the messages of a run take whose one message makes so many calls, each with a result."""
    names = [f"c{number}" for number in range(count)]
    starts = [ToolCallStartEvent(tool_call_id=name, tool_call_name="f", parent_message_id="m") for name in names]
    arguments = [ToolCallArgsEvent(tool_call_id=name, delta="{}") for name in names]
    results = [ToolCallResultEvent(message_id=f"r-{name}", tool_call_id=name, content="") for name in names]
    transcript = Transcript()

    def fold() -> None:
        for event in (*starts, *arguments, *results):
            transcript.feed(event)
        assert len(transcript.messages) == 1 + count

    return lines_of(fold)


def test_the_messages_of_ten_times_as_many_calls_are_ten_times_the_work() -> None:
    assert lines_of_calls(1_000) < 11 * lines_of_calls(100)


# --- imports ----------------------------------------------------------------------------------------------------------

AT_START = {
    *("ag_ui", "annotated_doc", "annotated_types", "anyio", "app", "click", "fastapi", "h11", "httptools", "idna"),
    *("msgspec", "opentelemetry", "orjson", "pydantic", "pydantic_core", "python_multipart", "multipart", "sniffio"),
    *("sse_starlette", "starlette", "typing_extensions", "typing_inspection", "uvicorn", "uvloop", "websockets"),
}
"""What may be loaded before the first ``/ping`` by a server whose settings ask for nothing."""

NEVER_AT_START = (
    *("boto3", "botocore", "docstring_parser", "dotenv", "google", "grpc", "httpx", "httpx2", "jsonschema", "mcp"),
    *("openai", "pydantic_settings", "yaml"),
)
NONE_OF_OURS_AT_START = ("app.core.proto", "app.models.bedrock", "app.models.openai", "app.tools.mcp")

LOADED = """
import sys
before = set(sys.modules)
import app.server.run
from app.main import create_app
from app.settings import load_settings
create_app(load_settings())
print(*sys.modules.keys() - before)
"""

ANOTHER_AGENT = """
import sys
from app.main import build_service
from app.settings import Settings
build_service(Settings(agent="tests.speed.test_counts:talker"))
print(*sys.modules)
"""

FIRST_RUN = """
import asyncio, json, sys
from app.main import create_app
from app.settings import Settings
from tests.engine.doubles import ask
from tests.speed.test_counts import respond
app = create_app(Settings(agent="tests.speed.test_counts:talker"))
before = set(sys.modules)
asyncio.run(respond(app, "POST", "/invocations", json.dumps(ask()).encode()))
print("answered", *sys.modules.keys() - before)
"""

COMMAND = "import sys; before = set(sys.modules); import app.__main__; print(*sys.modules.keys() - before)"

SERVING = """
import gc, sys, uvicorn
async def main_loop(_): print(gc.isenabled(), gc.get_freeze_count() > 10_000, gc.get_threshold()[0])
uvicorn.Server.main_loop = main_loop
from app.__main__ import main
sys.exit(main(["serve"]))
"""


def said(code: str) -> list[str]:
    """What an interpreter of its own prints, in words."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    ask_any_port = {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env | ask_any_port, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


PUT_OFF = """
from app.main import create_app
from app.settings import Settings
from fastapi.openapi.models import Contact, OpenAPI
from pydantic import BaseModel
app = create_app(Settings())
print(OpenAPI.__pydantic_complete__, Contact.__pydantic_complete__, BaseModel.model_config)
app.openapi_url = "/openapi.json"
app.get("/rooms/{number}")(lambda number: number)
print(*app.openapi()["paths"])
"""


def test_a_start_builds_no_openapi_but_who_asks_for_it_gets_it() -> None:
    assert said(PUT_OFF) == ["False", "False", "{}", "/rooms/{number}"]


def test_a_start_loads_only_what_it_needs() -> None:
    modules = said(LOADED)
    packages = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    loaded = {name for name in packages if not name.startswith("_")} - {"cython_runtime"}
    assert loaded - AT_START == set()
    assert not loaded & set(NEVER_AT_START)
    assert not [name for name in modules if name.startswith(NONE_OF_OURS_AT_START)]


def test_another_agent_loads_nothing_of_the_assistant() -> None:
    assert not {"app.assembly", "app.agents.assistant", "app.agents.approvals"} & set(said(ANOTHER_AGENT))


def test_the_first_run_of_a_process_loads_nothing_more() -> None:
    """It is the one that somebody waits for, where each session has a process of its own."""
    assert said(FIRST_RUN) == ["answered"]


def test_the_command_line_loads_nothing_but_the_standard_library() -> None:
    packages = {name.partition(".")[0] for name in said(COMMAND)}
    assert packages - set(sys.stdlib_module_names) == {"app"}


def test_garbage_is_collected_while_serving_but_not_what_the_start_made_and_not_too_often() -> None:
    assert said(SERVING) == ["True", "True", "10000"]


def test_an_agent_may_choose_how_often_garbage_is_collected() -> None:
    chooses = "import gc, app.server.run\nmake = app.server.run.create_app\n"
    agents = "def create(settings): gc.set_threshold(5); return make(settings)\napp.server.run.create_app = create\n"
    assert said(chooses + agents + SERVING) == ["True", "True", "5"]
