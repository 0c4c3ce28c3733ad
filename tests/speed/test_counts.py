"""The counts that make speed: encodings, writes, imports. No timings: those are for ``make bench``."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType

import pytest
from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from starlette.types import ASGIApp

import agui_container
from agui_container.engine import terminal_events
from agui_container.engine.run import run
from agui_container.engine.run.fairness import BURST
from agui_container.main import build_app
from agui_container.ports import Item, RunContext
from agui_container.protocol import encoder
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.delta_template import DeltaTemplate
from agui_container.protocol.encoder import encode
from agui_container.settings import Settings
from tests.engine.doubles import agent_of, asking, caller, envelopes, make_service
from tests.executed_lines import lines_of
from tests.requirements import requirement
from tests.transports.exchange import AsgiExchange

ROOT = Path(__file__).parents[2]
PACKAGE = str(Path(agui_container.__file__).parent)
DELTAS = 6 * BURST
AROUND = 4
"""RUN_STARTED, TEXT_MESSAGE_START, TEXT_MESSAGE_END, RUN_FINISHED."""

MAX_TURNS = 20
"""Turns of a loop that has nothing else to do: more than a few tasks need to wake each other, and less than a timer of
a millisecond or a thread takes."""


async def talker(_: RunAgentInput) -> AsyncIterator[Item]:
    """An agent that never waits."""
    for _number in range(DELTAS):
        yield "hello world, "


# --- encodings --------------------------------------------------------------------------------------------------------


@requirement("speed.flush", "speed.deltas")
@pytest.mark.parametrize("readers", [1, 5])
async def test_an_event_is_encoded_once_whatever_the_number_of_readers(
    monkeypatch: pytest.MonkeyPatch, readers: int
) -> None:
    encoded, from_template = list[bytes](), 0
    encode_next = DeltaTemplate.encode_next

    def count(event: BaseEvent) -> bytes:
        encoded.append(encode(event))
        return encoded[-1]

    def count_next(template: DeltaTemplate, item: Item) -> bytes | None:
        nonlocal from_template
        data = encode_next(template, item)
        if data is not None:
            from_template += 1
            encoded.append(data)
        return data

    monkeypatch.setattr(DeltaTemplate, "encode_next", count_next)
    for module in (terminal_events, encoder, run):
        monkeypatch.setattr(module, "encode", count)
    service = make_service(talker)
    first = service.start(asking(), caller())
    others = [await service.attach(caller(), "t1", "r1", 0) for _ in range(readers - 1)]
    read = await asyncio.gather(*map(envelopes, (first, *others)))
    assert [len(each) for each in read] == [DELTAS + AROUND] * readers
    assert sorted(encoded) == sorted(envelope.data for envelope in read[0])
    assert from_template == DELTAS - 1


# --- writes -----------------------------------------------------------------------------------------------------------


async def writes_of(app: ASGIApp, method: str = "POST", path: str = "/invocations") -> list[bytes]:
    """The bodies that an application sends, each of which becomes one write.

    An empty one in the middle is none: it waits until the client has taken the one before.
    """
    exchange = AsgiExchange()
    await exchange.answer(app, method, path)
    return [message["body"] for message in exchange.messages[1:] if message["body"] or not message["more_body"]]


async def application(agent: object = talker) -> ASGIApp:
    service = make_service(agent)
    await service.open()
    return build_app(Settings(), service)


async def test_events_that_are_ready_leave_in_one_write() -> None:
    writes = await writes_of(await application())
    assert b"".join(writes).count(b"\n\n") == DELTAS + AROUND
    assert len(writes) <= DELTAS // BURST + 2


async def test_text_that_a_tool_emits_while_the_agent_waits_leaves_in_one_write() -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async def tool() -> None:
            for number in range(BURST):
                ctx.emit(f"{number} of them")

        yield TextMessageStartEvent(message_id="m1")
        await asyncio.create_task(tool())

    writes = await writes_of(await application(agent))
    assert [said for write in writes if (said := write.count(b" of them"))] == [BURST]


async def test_a_run_that_is_read_again_leaves_in_one_write_and_its_end_when_that_is_taken() -> None:
    app = await application()
    await writes_of(app)
    writes = await writes_of(app, "GET", "/runs/r1/events")
    assert [write.count(b"\n\n") for write in writes] == [DELTAS + AROUND, 0]


async def test_the_end_of_a_stream_leaves_with_its_last_events() -> None:
    first, last = await writes_of(await application(agent_of("all of it")))
    assert (first.count(b"\n\n"), last.count(b"\n\n")) == (1, AROUND)


@requirement("speed.push")
@pytest.mark.parametrize("has_direct_way", [True, False])
async def test_the_first_event_waits_for_no_timer_and_no_thread(*, has_direct_way: bool) -> None:
    turns, written_at, loop = 0, list[int](), asyncio.get_running_loop()

    def count() -> None:
        nonlocal turns
        turns += 1
        if not written_at:
            loop.call_soon(count)

    async def note(body: bytes) -> None:
        if body:
            written_at.append(turns)

    def note_chunk(_: bytes) -> bool:
        written_at.append(turns)
        return True

    app = await application()
    loop.call_soon(count)
    await AsgiExchange(note, takes=note_chunk if has_direct_way else None).answer(app)
    assert written_at[0] <= MAX_TURNS


# --- calls ------------------------------------------------------------------------------------------------------------

MAX_CALLS = 620
"""Calls of this project's functions for a run of one delta, from the request to the end of its response.
``python -m bench.run_calls`` counts those of all modules, over a socket."""


async def test_a_run_of_one_delta_executes_a_bounded_number_of_calls() -> None:
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls += 1

    app, before = await application(agent_of("one")), sys.getprofile()
    await AsgiExchange(thread="the first one fills caches").answer(app)
    sys.setprofile(count)
    try:
        await AsgiExchange().answer(app)
    finally:
        sys.setprofile(before)
    assert 0 < calls <= MAX_CALLS


# --- messages ---------------------------------------------------------------------------------------------------------


def lines_of_calls(count: int) -> int:
    """Return the lines for the messages of a run whose one message makes ``count`` calls, each with a result."""
    names = [f"c{number}" for number in range(count)]
    starts = [ToolCallStartEvent(tool_call_id=name, tool_call_name="f", parent_message_id="m") for name in names]
    arguments = [ToolCallArgsEvent(tool_call_id=name, delta="{}") for name in names]
    results = [ToolCallResultEvent(message_id=f"r-{name}", tool_call_id=name, content="") for name in names]
    transcript = Transcript()

    def feed() -> None:
        for event in (*starts, *arguments, *results):
            transcript.feed(event)
        assert len(transcript.messages) == 1 + count

    return lines_of(feed)


def test_the_messages_of_ten_times_as_many_calls_are_ten_times_the_work() -> None:
    assert lines_of_calls(1_000) < 11 * lines_of_calls(100)


# --- imports ----------------------------------------------------------------------------------------------------------

AT_START = {
    *(
        "ag_ui",
        "annotated_doc",
        "annotated_types",
        "anyio",
        "agui_container",
        "click",
        "fastapi",
        "h11",
        "httptools",
        "idna",
    ),
    *("msgspec", "opentelemetry", "orjson", "pydantic", "pydantic_core", "python_multipart", "multipart", "sniffio"),
    *("sse_starlette", "starlette", "typing_extensions", "typing_inspection", "uvicorn", "uvloop", "websockets"),
    "watchfiles",  # uvicorn imports it where the extra cli has installed it, which the image has not
}
"""Packages that a server with default settings may import before the first ``/ping``."""

NEVER_AT_START = (
    *("boto3", "botocore", "docstring_parser", "dotenv", "google", "grpc", "httpx", "httpx2", "jsonschema", "mcp"),
    *("openai", "pydantic_settings", "yaml"),
)
NONE_OF_OURS_AT_START = (
    "agui_container.protocol.wire.protobuf",
    "agui_container.models.bedrock",
    "agui_container.models.openai",
    "agui_container.tools.mcp",
    "agui_container.transports.openapi.document",
    "agui_container.transports.openapi.page",
    "agui_container.transports.roboto.endpoints",
    "agui_container.transports.roboto.sessions",
)

LOADED = """
import sys
before = set(sys.modules)
import agui_container.server.run
from agui_container.main import build_app
from agui_container.settings_sources import load_settings
build_app(load_settings())
print(*sys.modules.keys() - before)
"""

ANOTHER_AGENT = """
import sys
from agui_container.main import build_service
from agui_container.settings import Settings
build_service(Settings(agent="tests.speed.test_counts:talker"))
print(*sys.modules)
"""

FIRST_RUN = """
import asyncio, sys
from agui_container.main import build_app
from agui_container.settings import Settings
from tests.transports.exchange import AsgiExchange
app = build_app(Settings(agent="tests.speed.test_counts:talker"))
before = set(sys.modules)
asyncio.run(AsgiExchange().answer(app))
print("answered", *sys.modules.keys() - before)
"""

COMMAND = "import sys; before = set(sys.modules); import agui_container.__main__; print(*sys.modules.keys() - before)"

SERVING = """
import gc, sys, uvicorn
async def main_loop(_):
    print(gc.isenabled(), gc.get_freeze_count() > 10_000, gc.get_threshold()[0], sys.getswitchinterval())
uvicorn.Server.main_loop = main_loop
from agui_container.cli.command_line import main
sys.exit(main(["serve"]))
"""


def printed_words(code: str) -> list[str]:
    """Run code in a new interpreter and return the words that it prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    ask_any_port = {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env | ask_any_port, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


PUT_OFF = """
from agui_container.main import build_app
from agui_container.settings import Settings
from fastapi.openapi.models import Contact, OpenAPI
from pydantic import BaseModel
app = build_app(Settings())
print(OpenAPI.__pydantic_complete__, Contact.__pydantic_complete__, BaseModel.model_config)
app.openapi_url = "/openapi.json"
app.get("/rooms/{number}")(lambda number: number)
print("/rooms/{number}" in app.openapi()["paths"])
"""


def test_a_start_builds_no_openapi_but_who_asks_for_it_gets_it() -> None:
    assert printed_words(PUT_OFF) == ["False", "False", "{}", "True"]


def test_a_start_loads_only_what_it_needs() -> None:
    modules = printed_words(LOADED)
    packages = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    loaded = {name for name in packages if not name.startswith("_")} - {"cython_runtime"}
    assert loaded - AT_START == set()
    assert not loaded & set(NEVER_AT_START)
    assert not [name for name in modules if name.startswith(NONE_OF_OURS_AT_START)]


def test_another_agent_loads_nothing_of_the_assistant() -> None:
    assert not {
        "agui_container.assistant_factory",
        "agui_container.agents.assistant.assistant",
    } & set(printed_words(ANOTHER_AGENT))


def test_the_first_run_of_a_process_loads_nothing_more() -> None:
    """The first run matters, because on AgentCore each session has its own process."""
    assert printed_words(FIRST_RUN) == ["answered"]


def test_the_command_line_loads_nothing_but_click() -> None:
    packages = {name.partition(".")[0] for name in printed_words(COMMAND)}
    assert packages - set(sys.stdlib_module_names) == {"agui_container", "click"}


def test_garbage_is_collected_while_serving_but_not_what_the_start_made_and_not_too_often() -> None:
    assert printed_words(SERVING) == ["True", "True", "10000", "0.0005"]


def test_an_agent_may_choose_how_often_garbage_is_collected() -> None:
    chooses = "import gc, agui_container.server.run\nmake = agui_container.server.run.create_app\n"
    agents = (
        "def create(*args): gc.set_threshold(5); return make(*args)\nagui_container.server.run.create_app = create\n"
    )
    assert printed_words(chooses + agents + SERVING) == ["True", "True", "5", "0.0005"]
