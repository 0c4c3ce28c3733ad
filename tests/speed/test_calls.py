"""What can be counted of speed: calls, writes and imports. ``make bench`` measures time."""

import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from weakref import ReferenceType, ref

from ag_ui.core import RunAgentInput
from starlette.types import ASGIApp

import agui_container
from agui_container.main import build_app, create_app
from agui_container.settings import Settings
from tests.engine.doubles import agent_of, eventually, make_service
from tests.web.exchange import AsgiExchange

ROOT = Path(__file__).parents[2]
PACKAGE = str(Path(agui_container.__file__).parent)
MAX_CALLS = 426
"""Calls of this project's functions for a run of one delta, from the request to the end of its response."""

RUNS = 3
"""Runs of which the one with the fewest calls counts: the timer of the loop's monitor may end within a run."""

DELTAS = 200
NEVER_AT_START = {
    *("bedrock_agentcore", "boto3", "botocore", "google", "grpc", "grpclib", "h11", "h2", "hpack", "httpcore"),
    *("httpx", "hyperframe", "jsonschema", "mcp", "openai", "sqlalchemy", "yaml"),
}
"""Packages that no run of an agent of one's own needs. A model loads those of its provider at the first call."""

START = """
import sys
import agui_container.server.run
from agui_container.main import build_app
from agui_container.models import BedrockModel, OpenAIModel
from agui_container.settings import Settings
app = build_app(Settings(agent="tests.speed.test_calls:talker"))
models = BedrockModel("m"), OpenAIModel("m")
print(*sys.modules)
"""
FIRST_RUN = """
import asyncio, sys
from agui_container.main import build_app
from agui_container.settings import Settings
from tests.web.exchange import AsgiExchange
app = build_app(Settings(agent="tests.speed.test_calls:talker"))
before = set(sys.modules)
asyncio.run(AsgiExchange().answer(app))
print("answered", *sys.modules.keys() - before)
"""


async def talker(_: RunAgentInput) -> AsyncIterator[str]:
    for _number in range(DELTAS):
        yield "hello world, "


async def application(agent: object) -> ASGIApp:
    service = make_service(agent)
    await service.open()
    return build_app(Settings(), service)


def printed_words(code: str) -> list[str]:
    """Run code in a new interpreter and return the words that it prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    path = os.pathsep.join(map(str, (ROOT, ROOT / "app", ROOT / "clients" / "python" / "src")))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


async def test_a_run_of_one_delta_executes_a_bounded_number_of_calls() -> None:
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls += 1

    app, before = await application(agent_of("one")), sys.getprofile()
    await AsgiExchange(thread="the first one fills caches").answer(app)
    counted = list[int]()
    for number in range(RUNS):
        calls = 0
        exchange = AsgiExchange(thread=f"t{number}")
        sys.setprofile(count)
        try:
            await exchange.answer(app)
        finally:
            sys.setprofile(before)
        counted.append(calls)
    assert 0 < min(counted) <= MAX_CALLS


async def test_a_run_that_is_ready_at_once_is_one_write() -> None:
    exchange = AsgiExchange()
    await exchange.answer(await application(agent_of("one")), "POST", "/invocations")
    (write,) = [body for message in exchange.messages[1:] if (body := message["body"])]
    assert (write.count(b"RUN_STARTED"), write.count(b"RUN_FINISHED")) == (1, 1)


async def test_events_that_are_ready_leave_in_one_write() -> None:
    exchange = AsgiExchange()
    await exchange.answer(await application(talker), "POST", "/invocations")
    writes = [message["body"] for message in exchange.messages[1:] if message["body"]]
    assert b"".join(writes).count(b"TEXT_MESSAGE_CONTENT") == DELTAS
    assert len(writes) <= 3


async def test_the_end_of_a_run_frees_its_input_without_the_garbage_collector() -> None:
    inputs: list[ReferenceType[RunAgentInput]] = []

    async def agent(run_input: RunAgentInput) -> AsyncIterator[str]:
        inputs.append(ref(run_input))
        yield "one"

    gc.disable()
    try:
        await AsgiExchange().answer(create_app(agent, Settings()))
        await eventually(lambda: inputs[0]() is None)
    finally:
        gc.enable()


def test_a_start_loads_nothing_that_no_run_needs() -> None:
    assert not {name.partition(".")[0] for name in printed_words(START)} & NEVER_AT_START


def test_the_first_run_of_a_process_loads_nothing_more() -> None:
    """The first run matters, because on AgentCore each session has its own process."""
    assert printed_words(FIRST_RUN) == ["answered"]
