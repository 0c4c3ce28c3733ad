"""The log's lines about runs: one at the end of each, and where an agent went wrong."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TokenUsage,
)

from agui_container.logging import FACTS
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from tests.conftest import Connect
from tests.engine.doubles import ask
from tests.requirements import requirement

LOGGER = "agui_container.engine.run.run"
IDS = "run=r1 thread=t1"

pytestmark = pytest.mark.durable


def ends(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of runs that have ended."""
    return [message for message in caplog.messages if message.startswith("run finished")]


async def finished(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.usage.append(TokenUsage(input_tokens=40, output_tokens=2))
    yield "hello"


async def interrupted(run_input: RunAgentInput) -> AsyncIterator[Item]:
    waiting = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r")])
    yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id, outcome=waiting)


async def failed(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    raise ValueError


async def overloaded(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"
    raise AppError(ErrorCode.MODEL_ERROR, "The model is overloaded.")


async def reported(_: RunAgentInput) -> AsyncIterator[Item]:
    yield RunErrorEvent(message="no", code="MINE outcome=finished")


async def unnamed(_: RunAgentInput) -> AsyncIterator[Item]:
    yield RunErrorEvent(message="no")


ENDS: list[tuple[object, dict[str, object]]] = [
    (finished, {"outcome": "finished", "ms": 0, "events": 5, "tokens": 42}),
    (interrupted, {"outcome": "interrupted", "ms": 0, "events": 2, "tokens": 0}),
    (failed, {"outcome": "AGENT_ERROR", "ms": 0, "events": 5, "tokens": 0}),
    (overloaded, {"outcome": "MODEL_ERROR", "ms": 0, "events": 5, "tokens": 0}),
    (reported, {"outcome": "MINE outcome=finished", "ms": 0, "events": 2, "tokens": 0}),
    (unnamed, {"outcome": "error", "ms": 0, "events": 2, "tokens": 0}),
]


@requirement("log.end")
@pytest.mark.parametrize(("agent", "facts"), ENDS)
async def test_the_end_of_a_run_is_one_line(
    connect: Connect, agent: object, facts: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(agent)
    with caplog.at_level(logging.INFO, LOGGER):
        await client.run(ask())
    outcome, *others = [
        f"{name}={value!r}" if " " in str(value) else f"{name}={value}" for name, value in facts.items()
    ]
    assert ends(caplog) == [f"run finished {IDS} agent=agent {outcome} {' '.join(others)}"]
    [written] = [getattr(record, FACTS) for record in caplog.records if hasattr(record, FACTS)]
    assert written == {"agent": "agent", **facts}


@requirement("log.end")
async def test_a_run_that_is_cancelled_or_read_twice_has_one_line(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        await asyncio.Event().wait()

    client = await connect(silent)
    with caplog.at_level(logging.INFO, LOGGER):
        stream = await client.start(ask())
        await stream.until("TEXT_MESSAGE_CONTENT")
        client.clock.advance(1.5)
        await client.cancel("t1", "r1")
        await stream.rest()
        await client.run(ask())
        await client.cancel("t1", "r1")
    assert ends(caplog) == [f"run finished {IDS} agent=agent outcome=cancelled ms=1500 events=5 tokens=0"]


@requirement("log.end")
async def test_a_request_that_is_refused_is_no_run(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    async def silent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        await asyncio.Event().wait()

    client = await connect(silent)
    with caplog.at_level(logging.INFO, LOGGER):
        stream = await client.start(ask())
        await stream.until("TEXT_MESSAGE_CONTENT")
        with pytest.raises(Exception, match="THREAD_BUSY"):
            await client.run(ask(run="r2"))
        assert ends(caplog) == []
        await client.cancel("t1", "r1")
        await stream.rest()
