"""Who writes a stream: whoever brings news, a task where that has to wait or is much; always one at a time."""

import asyncio
import json
import random
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import ContextVar

import pytest
from ag_ui.core import CustomEvent, EventType, RunAgentInput
from starlette.types import Message, Send

from app.core.wire import Batch, sse
from app.edge import lookout, stream
from app.edge.formats import EventStream
from app.edge.lookout import Lookout
from app.edge.stream import RunStream
from app.engine.run import Run
from app.engine.service import Service
from app.main import create_app
from app.ports import Item
from app.settings import Settings
from tests.engine.doubles import WAIT, ask, asking, caller, eventually, make_service
from tests.requirements import requirement

On = Callable[[bytes], Awaitable[None]]


def as_it_is(send: Send, _: list[bytes]) -> Send:
    """A server's way to send, which can only be awaited."""
    return send


async def written(
    service: Service,
    on_write: On,
    on_start: Callable[[], object] = int,
    through: Callable[[Send, list[bytes]], Send] = as_it_is,
) -> list[bytes]:
    """The writes of a response, each told to ``on_write`` before it counts, as to a socket that may make it wait.

    ``through`` makes the way to send that the application is given, and may write by itself.
    """
    app, done, writes = create_app(Settings(), service), asyncio.Event(), list[bytes]()
    messages: list[Message] = [{"type": "http.request", "body": json.dumps(ask()).encode(), "more_body": False}]
    scope = {"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "method": "POST", "headers": []}

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await done.wait()
        return {"type": "http.disconnect"}

    under_way = 0

    async def send(message: Message) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        if message["type"] == "http.response.body":
            await on_write(message["body"])
        else:
            on_start()
        if body := message.get("body"):
            writes.append(body)
        if message["type"] == "http.response.body" and not message["more_body"]:
            done.set()
        under_way -= 1

    await service.open()
    async with asyncio.timeout(WAIT):
        path = {"path": "/invocations", "raw_path": b"/invocations", "query_string": b""}
        await app({**scope, **path}, receive, through(send, writes))
    return writes


class Near:
    """A connection that writes the pieces it takes, and is given those that it does not as messages."""

    def __init__(self, takes: Callable[[bytes], bool]) -> None:
        self.pieces = 0
        self._takes = takes

    def through(self, send: Send, writes: list[bytes]) -> Send:
        self._send, self._writes = send, writes
        return self.send

    async def send(self, message: Message) -> None:
        await self._send(message)

    def write_piece(self, body: bytes) -> bool:
        if self._takes(body):
            self._writes.append(body)
            self.pieces += 1
            return True
        return False


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
    writers, request = list[str](), named_task()

    async def note(_: bytes) -> None:
        writers.append(named_task())

    writes = await written(make_service(paced), note)
    assert numbers(writes) == list(range(1, 25))
    assert writers.count("run r1") >= 15
    assert (writers[0], writers[-1]) == (request, "run r1")
    assert writers.count(request) == 1


@requirement("speed.at-once")
async def test_a_lone_event_is_written_to_the_connection_itself() -> None:
    sent, near = list[bytes](), Near(lambda _: True)

    async def note(body: bytes) -> None:
        sent.append(body)

    writes = await written(make_service(paced), note, through=near.through)
    assert numbers(writes) == list(range(1, 25))
    assert near.pieces >= 15
    assert near.pieces + len(sent) == len(writes)


@requirement("speed.at-once")
async def test_what_a_connection_does_not_take_at_once_is_sent_and_nothing_overtakes_it() -> None:
    dice = random.Random(1)  # noqa: S311 - a seed makes the dice the same in every run

    async def full(_: bytes) -> None:
        for _turn in range(dice.choice((0, 1, 5))):
            await asyncio.sleep(0)

    near = Near(lambda _: dice.random() < 0.5)
    writes = await written(make_service(paced), full, through=near.through)
    assert numbers(writes) == list(range(1, 25))
    assert 0 < near.pieces < len(writes) - 3


@requirement("speed.at-once")
async def test_what_a_connection_raises_ends_the_stream_and_is_not_the_agents_failure() -> None:
    def broken(body: bytes) -> bool:
        if b'"delta":"word' in body:
            raise RuntimeError("the transport is gone")
        return True

    service = make_service(paced)
    with pytest.raises(RuntimeError, match="the transport is gone"):
        await written(service, at_once, through=Near(broken).through)
    run = next(service._lifecycle.runs("everybody"))
    await eventually(lambda: run.log.has_ended)
    assert run.status == "finished"


@requirement("http.keepalive")
async def test_a_stream_whose_tokens_are_written_to_its_connection_is_not_silent() -> None:
    says, sent = asyncio.Queue[str](), list[bytes]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        while True:
            yield await says.get()

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    service, near = make_service(agent), Near(lambda _: True)
    await service.open()
    reader = await service.admit(asking(), caller())
    speaking, left = RunStream(reader, EventStream(), "id", Lookout(15.0)), asyncio.Event()

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    task = asyncio.create_task(speaking({"method": "POST"}, receive, near.through(send, sent)))
    await eventually(lambda: b"RUN_STARTED" in b"".join(sent))
    now = asyncio.get_running_loop().time()
    speaking.look(now)
    says.put_nowait("word")
    await eventually(lambda: near.pieces > 0)
    speaking.look(now + 20)
    await asyncio.sleep(0)
    assert EventStream.comment not in sent
    speaking.look(now + 40)
    await eventually(lambda: EventStream.comment in sent)
    left.set()
    await task
    await service.drain(0)


@requirement("speed.memory")
async def test_a_stream_with_nothing_to_write_has_no_task_but_its_requests() -> None:
    tasks = list[str]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "word"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks.extend(sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name() not in others))

    others, request = {task.get_name() for task in asyncio.all_tasks()}, named_task()
    await written(make_service(agent), at_once)
    assert request in others
    assert tasks == ["run r1"]


@requirement("speed.at-once")
async def test_the_beginning_of_a_run_is_written_before_its_agent_does_anything() -> None:
    bodies, seen = list[bytes](), list[bytes]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        seen.extend(bodies)  # whatever it does now, however long it blocks
        yield "word"

    async def note(body: bytes) -> None:
        bodies.append(body)

    await written(make_service(agent), note)
    assert b"RUN_STARTED" in b"".join(seen)


async def at_once(_: bytes) -> None:
    """A socket that takes all there is."""


def named_task() -> str:
    """The task that is at work."""
    task = asyncio.current_task()
    return task.get_name() if task else ""


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
@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError])
@pytest.mark.parametrize("where", [b'"delta":"word', b"RUN_FINISHED"])
async def test_a_write_that_fails_is_the_last_and_not_the_agents_failure(
    caplog: pytest.LogCaptureFixture, where: bytes, error: type[BaseException], turns: int
) -> None:
    tried = list[bytes]()

    async def broken(body: bytes) -> None:
        if where in body:
            tried.append(body)
            for _turn in range(turns):
                await asyncio.sleep(0)
            raise error("the socket is gone")

    service = make_service(paced)
    with pytest.raises(error):
        await written(service, broken)
    assert len(tried) == 1
    run = next(service._lifecycle.runs("everybody"))
    await eventually(lambda: run.log.over)
    assert run.status == "finished"
    assert not [record for record in caplog.records if "agent" in record.name]


@requirement("speed.at-once")
async def test_a_frame_that_cannot_be_made_is_not_the_agents_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmade(data: Sequence[bytes], first: int) -> bytes:
        if b'"delta":"word' in b"".join(data):
            raise RuntimeError("no frame")
        return sse(data, first)

    monkeypatch.setattr(EventStream, "frames", staticmethod(unmade))
    service = make_service(paced)
    with pytest.raises(RuntimeError, match="no frame"):
        await written(service, at_once)
    run = next(service._lifecycle.runs("everybody"))
    await eventually(lambda: run.log.has_ended)
    assert run.status == "finished"


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
            room = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(room.set_result, None)
            await room

    writes = await written(make_service(agent), sometimes_full)
    assert numbers(writes) == list(range(1, 203))


@requirement("speed.at-once")
async def test_what_is_set_at_the_head_of_a_response_all_its_writes_see() -> None:
    spans, seen = ContextVar[str]("spans", default="none"), list[str]()

    async def traced(body: bytes) -> None:
        seen.append(spans.get())
        if not body:
            await asyncio.sleep(0)
            seen.append(spans.get())

    await written(make_service(paced), traced, on_start=lambda: spans.set("a response"))
    assert set(seen) == {"a response"}


@requirement("speed.at-once")
async def test_all_writes_of_a_stream_see_one_context_and_the_agent_another() -> None:
    spans, agents = ContextVar[str]("spans", default="none"), list[str]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(20):
            yield CustomEvent(name="n", value=number)
            await asyncio.sleep(0)
            agents.append(spans.get())

    async def traced(_: bytes) -> None:
        token = spans.set("a write")
        try:
            await asyncio.sleep(0)
        finally:
            spans.reset(token)

    assert numbers(await written(make_service(agent), traced)) == list(range(1, 23))
    assert agents == ["none"] * 20


@requirement("speed.at-once")
@pytest.mark.parametrize("stuck", [b'"value":0', b""], ids=["an event", "the end"])
async def test_a_client_that_takes_nothing_is_let_go_whatever_is_written(
    monkeypatch: pytest.MonkeyPatch, stuck: bytes
) -> None:
    monkeypatch.setattr(stream, "SEND_SECONDS", 0.05)
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 0.01)

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="n", value=0)
        await asyncio.sleep(0)

    async def full(body: bytes) -> None:
        if body == stuck or (stuck and stuck in body):
            await asyncio.Event().wait()

    service = make_service(agent)
    writes = await written(service, full)
    assert 1 not in (run.presence.here for run in service._lifecycle.runs("everybody"))
    assert len(numbers(writes)) < 3 or not stuck


@requirement("speed.at-once")
async def test_a_client_that_leaves_while_a_write_waits_leaves_nothing_behind() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(5):
            yield CustomEvent(name="n", value=number)
            await asyncio.sleep(0)

    async def full(body: bytes) -> None:
        if b'"value":2' in body:
            [run] = service._lifecycle.runs("everybody")
            asyncio.get_running_loop().call_soon(close_readers, run)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    def close_readers(run: Run) -> None:
        for cursor in list(run.log._waiting):
            cursor.close()

    service = make_service(agent)
    assert numbers(await written(service, full)) == [1, 2, 3, 4]


class ReadsAStore:
    """A reader that is asking a store when its client leaves."""

    def __init__(self) -> None:
        self.run = Namespace(log=None)
        self.waits, self.rests = True, False
        self.asks, self.closed = asyncio.Event(), asyncio.Event()
        self.answered = 0

    def offer(self, _: RunStream) -> None:
        """Nothing comes at once."""

    async def __aiter__(self) -> AsyncIterator[Batch]:
        self.asks.set()
        await self.closed.wait()
        await asyncio.sleep(0)
        self.answered += 1
        return
        yield

    def close(self) -> None:
        self.closed.set()


@requirement("speed.at-once")
async def test_what_is_asked_of_a_store_is_not_cut_off_when_the_client_leaves() -> None:
    reader = ReadsAStore()

    async def receive() -> Message:
        await reader.asks.wait()
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        """As a server does where nobody is there."""

    async with asyncio.timeout(WAIT):
        await RunStream(reader, EventStream(), "r1", Lookout(60))({"method": "GET"}, receive, send)  # type: ignore[arg-type]
    assert reader.answered == 1


class Replay:
    """A reader that is far behind, and how much of it was asked for."""

    def __init__(self) -> None:
        self.run = Namespace(log=None)
        self.waits = self.rests = False
        self.handed_out = 0
        self.is_closed = False

    def offer(self, _: RunStream) -> None:
        """Nothing comes."""

    @property
    def over(self) -> bool:
        return self.handed_out == 50

    def __aiter__(self) -> "Replay":
        return self

    async def __anext__(self) -> Batch:
        if self.is_closed or self.handed_out == 50:
            raise StopAsyncIteration
        self.handed_out += 1
        return Batch("r1", self.handed_out, [EventType.CUSTOM], [b"{}"])

    def nudge(self) -> None:
        """It does not wait."""

    def close(self) -> None:
        self.is_closed = True


@requirement("speed.at-once")
async def test_a_client_that_leaves_amid_what_was_said_before_is_heard() -> None:
    reader, left = Replay(), asyncio.Event()

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            left.set()
            await asyncio.sleep(0)

    async with asyncio.timeout(WAIT):
        await RunStream(reader, EventStream(), "r1", Lookout(60))({"method": "GET"}, receive, send)  # type: ignore[arg-type]
    assert reader.handed_out < 5


@requirement("speed.at-once")
async def test_nothing_is_written_behind_the_end_however_late_the_client_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 0.001)
    reader, left, sent = Replay(), asyncio.Event(), list[Message]()
    looks = 0

    class Late(RunStream):
        def look(self, now: float) -> None:
            nonlocal looks
            looks += 1
            super().look(now + 1_000)

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    stream = Late(reader, EventStream(), "r1", Lookout(60))  # type: ignore[arg-type]
    answering = asyncio.create_task(stream({"method": "GET"}, receive, send))
    await eventually(lambda: looks > 5)
    left.set()
    async with asyncio.timeout(WAIT):
        await answering
    assert [message["more_body"] for message in sent[1:]] == [True] * 49 + [False]


@requirement("speed.at-once")
async def test_a_failure_behind_the_last_write_is_raised_though_the_server_says_that_all_is_sent() -> None:
    sent = asyncio.Event()

    async def receive() -> Message:
        await sent.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if not message.get("more_body", True):
            sent.set()
            raise RuntimeError("behind the end")

    with pytest.raises(RuntimeError, match="behind the end"):
        async with asyncio.timeout(WAIT):
            await RunStream(Replay(), EventStream(), "r1", Lookout(60))({"method": "GET"}, receive, send)  # type: ignore[arg-type]
