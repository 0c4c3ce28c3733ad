"""The log's lines about runs: one at the end of each, and where an agent went wrong."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from ag_ui.core import (
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageContentEvent,
    TokenUsage,
)

from agui_container import logging as logs
from agui_container.log_values import FACTS
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.pipeline import EventPipeline
from tests.behaviour.client import begin_run
from tests.conftest import Connect
from tests.engine.doubles import agent_of, ask

LOGGER = "agui_container.run.run"
IDS = "run=r1 thread=t1"


@pytest.fixture(autouse=True)
def _console(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the lines as a server does, with tracebacks that are cut to the user's frames."""
    monkeypatch.setattr(caplog.handler, "formatter", logs.ConsoleFormatter())


def ends(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if message.startswith("run finished")]


async def agent_with_usage(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.usage.append(TokenUsage(input_tokens=40, output_tokens=2))
    yield "hello"


async def failing_agent(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    raise ValueError


async def agent_with_app_error(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    raise AppError(ErrorCode.MODEL_ERROR, "The model is overloaded.")


ASKS = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r")])
ENDS = [
    (agent_with_usage, ("finished", 5, 42)),
    (agent_of(RunFinishedEvent(thread_id="t1", run_id="r1", outcome=ASKS)), ("interrupted", 2, 0)),
    (failing_agent, ("AGENT_ERROR", 5, 0)),
    (agent_with_app_error, ("MODEL_ERROR", 5, 0)),
    (agent_of(RunErrorEvent(message="no", code="MINE outcome=finished")), ("MINE outcome=finished", 2, 0)),
    (agent_of(RunErrorEvent(message="no")), ("error", 2, 0)),
]


@pytest.mark.parametrize(("agent", "ended"), ENDS)
async def test_the_end_of_a_run_is_one_line(
    connect: Connect, agent: object, ended: tuple[str, int, int], caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(agent)
    outcome, events, tokens = ended
    with caplog.at_level(logging.INFO, LOGGER):
        await client.run(ask())
    quoted = repr(outcome) if " " in outcome else outcome
    assert ends(caplog) == [f"run finished {IDS} agent=agent outcome={quoted} ms=0 events={events} tokens={tokens}"]
    [written] = [getattr(record, FACTS) for record in caplog.records if hasattr(record, FACTS)]
    assert written == {"agent": "agent", "outcome": outcome, "ms": 0, "events": events, "tokens": tokens}


async def test_a_run_that_is_cancelled_or_read_twice_has_one_line_and_a_refused_one_none(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        await asyncio.Event().wait()

    client = await connect(silent)
    with caplog.at_level(logging.INFO, LOGGER):
        stream = await begin_run(client)
        with pytest.raises(Exception, match="THREAD_BUSY"):
            await client.run(ask(run="r2"))
        client.clock.advance(1.5)
        await client.cancel("t1", "r1")
        await stream.rest()
        await client.run(ask())
        await client.cancel("t1", "r1")
    assert ends(caplog) == [f"run finished {IDS} agent=agent outcome=cancelled ms=1500 events=5 tokens=0"]


EVENT = TextMessageContentEvent(message_id="m", delta="x")
"""Illegal, because its message is not open."""

OWN = str(Path(logs.__file__).parent)
HERE = __file__


async def yields(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    if True:
        yield EVENT
    yield "never"


async def yields_a_number(_: RunAgentInput) -> AsyncIterator[int]:
    yield 5


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        (yields, "\"text message 'm' is not open\""),
        (yields_a_number, "'int is neither an AG-UI event nor a string'"),
    ],
)
async def test_a_breach_of_the_protocol_names_the_agent_and_the_rule(
    connect: Connect, agent: Callable[..., object], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(agent)
    with caplog.at_level(logging.ERROR, LOGGER):
        await client.run(ask())
    [record] = caplog.records
    assert record.getMessage() == f"agent broke the protocol agent=agent error={error}"
    assert OWN not in caplog.text


def fault_line(first: int) -> int:
    """Return the number of the first line after ``first`` that is marked as the fault."""
    lines = Path(HERE).read_text().splitlines()
    return next(number for number in range(first, len(lines)) if lines[number - 1].endswith("  # the fault"))


async def raises(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    json.loads("no JSON")  # the fault


def raises_in_a_thread(_: RunAgentInput) -> Iterator[Item]:
    yield "hello"
    json.loads("no JSON")  # the fault


async def raises_from_another(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    yield "hello"
    try:
        ctx.emit(EVENT)
    except Exception as error:
        raise ValueError("Expecting value") from error  # the fault


async def raises_a_group(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    yield "hello"
    try:
        ctx.emit(EVENT)
    except Exception as error:  # noqa: BLE001 - shown below
        raise ExceptionGroup("Expecting value", [error]) from None  # the fault


@pytest.mark.parametrize("agent", [raises, raises_in_a_thread, raises_from_another, raises_a_group])
async def test_an_exception_names_the_line_of_the_agent_and_has_no_frames_of_the_server(
    connect: Connect, agent: Callable[..., object], caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(agent)
    with caplog.at_level(logging.ERROR, LOGGER):
        await client.run(ask())
    [record] = caplog.records
    line = fault_line(agent.__code__.co_firstlineno)
    assert record.getMessage().startswith("agent raised an exception type=")
    assert record.getMessage().endswith(f" at={HERE}:{line}")
    assert f'File "{HERE}", line {line}, in {agent.__name__}' in caplog.text
    assert "Expecting value" in caplog.text
    assert OWN not in caplog.text


async def test_a_fault_of_the_server_itself_has_the_whole_traceback(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(EventPipeline, "submit", json.loads)
    client = await connect(yields)
    with caplog.at_level(logging.ERROR, LOGGER):
        await client.run(ask())
    assert OWN in caplog.text
