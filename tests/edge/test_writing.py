"""Who writes a stream: whoever brings news while the writing task waits, else that task; always one at a time."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from ag_ui.core import CustomEvent, RunAgentInput
from starlette.types import Message

from app.engine.service import Service
from app.main import create_app
from app.ports import Item
from app.settings import Settings
from tests.engine.doubles import WAIT, ask, eventually, make_service
from tests.requirements import requirement

On = Callable[[bytes], Awaitable[None]]


async def written(service: Service, on_write: On) -> list[bytes]:
    """The writes of a response, each told to ``on_write`` before it counts, as to a socket that may make it wait."""
    app, done, writes = create_app(Settings(), service), asyncio.Event(), list[bytes]()
    messages: list[Message] = [{"type": "http.request", "body": json.dumps(ask()).encode(), "more_body": False}]
    scope = {"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "method": "POST", "headers": []}

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if body := message.get("body"):
            await on_write(body)
            writes.append(body)
        if message["type"] == "http.response.body" and not message["more_body"]:
            done.set()

    await service.open()
    async with asyncio.timeout(WAIT):
        path = {"path": "/invocations", "raw_path": b"/invocations", "query_string": b""}
        await app({**scope, **path}, receive, send)
    return writes


def numbers(writes: list[bytes]) -> list[int]:
    """The ids of the frames, in the order in which they were written."""
    return [int(line[4:]) for line in b"".join(writes).split(b"\n") if line.startswith(b"id: ")]


async def paced(_: RunAgentInput) -> AsyncIterator[Item]:
    for _number in range(20):
        yield "word "
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@requirement("speed.at-once")
async def test_a_lone_event_is_written_in_the_task_that_brings_it() -> None:
    writers = list[str]()

    async def note(_: bytes) -> None:
        task = asyncio.current_task()
        writers.append(task.get_name() if task else "")

    writes = await written(make_service(paced), note)
    assert numbers(writes) == list(range(1, 25))
    assert writers.count("run r1") >= 15
    assert writers[-1] == "write a stream"


@requirement("speed.at-once")
async def test_a_write_that_has_to_wait_holds_up_neither_the_agent_nor_the_order() -> None:
    may, begun, said = asyncio.Event(), asyncio.Event(), list[int]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(50):
            said.append(number)
            yield CustomEvent(name="n", value=number)
            await asyncio.sleep(0)
        await begun.wait()
        may.set()

    async def full(body: bytes) -> None:
        if b'"value":7' in body:
            begun.set()
            await may.wait()

    writes = await written(make_service(agent), full)
    assert len(said) == 50
    assert numbers(writes) == list(range(1, 53))


@requirement("speed.at-once")
async def test_a_write_that_fails_is_not_the_agents_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(body: bytes) -> None:
        if b'"delta":"word' in body:
            raise RuntimeError("the socket is gone")

    service = make_service(paced)
    with pytest.raises(ExceptionGroup) as raised:
        await written(service, broken)
    assert raised.group_contains(RuntimeError, match="the socket is gone")
    run = next(service._lifecycle.runs("everybody"))
    await eventually(lambda: run.log.ended)
    assert run.status == "finished"
    assert not [record for record in caplog.records if "agent" in record.name]


@requirement("speed.at-once")
@pytest.mark.parametrize("seed", range(30))
async def test_whatever_waits_the_frames_are_the_run_in_order(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a seed makes the dice the same in every run

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(200):
            yield CustomEvent(name="n", value=number)
            for _turn in range(dice.choice((0, 0, 0, 1, 2, 5))):
                await asyncio.sleep(0)

    async def sometimes_full(_: bytes) -> None:
        for _turn in range(dice.choice((0, 0, 1, 3, 10))):
            await asyncio.sleep(0)

    writes = await written(make_service(agent), sometimes_full)
    assert numbers(writes) == list(range(1, 203))
