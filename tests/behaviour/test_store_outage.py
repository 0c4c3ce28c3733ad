"""A database that goes away while a run is open: no reader sees an event that is not stored, and all see one end.

Each test body breaks a real database: the file of SQLite is moved away or may only be read, the connections to
PostgreSQL are cut.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Pool, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection

from agui_container.engine import admission
from agui_container.ports import store as store_port
from agui_container.replicas import leases
from agui_container.settings import Scope, Settings
from tests.behaviour.client import TERMINAL, Client, Refused, RunStream, outcome, text, types
from tests.behaviour.conftest import ServeOver
from tests.behaviour.inprocess import InProcess
from tests.behaviour.over_grpc import ERROR
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs, WsStream
from tests.conftest import Serve
from tests.engine.doubles import WAIT, FakeClock, Json, ask, eventually, make_service
from tests.relay import relay_to
from tests.waiting_agent import WaitingAgent

PAUSE = 0.02
"""Seconds between two rounds of the leases, in place of two seconds."""


class Outage:
    """A database with a switch. ``url`` is that of the server whose database goes away, ``direct`` always works."""

    def __init__(
        self, url: str, direct: str, begin: Callable[[], Awaitable[object]], end: Callable[[], Awaitable[object]]
    ) -> None:
        self.url, self.direct, self.begin, self.end = url, direct, begin, end

    @classmethod
    def of_file(cls, file: Path) -> "Outage":
        away, url = file.with_name("away.db"), f"sqlite:///{file}"

        async def begin() -> None:
            file.rename(away)  # noqa: ASYNC240 - a moment on a local disk

        async def end() -> None:
            away.rename(file)

        return cls(url, url, begin, end)


@contextmanager
def file_without_writes(file: Path) -> Iterator[Outage]:
    """The file may only be read for a while. Its mode does not keep root from writing, so its connections do."""
    query_only, url = 0, f"sqlite:///{file}"

    def limit(connection: DBAPIConnection, *_: object) -> None:
        connection.cursor().execute(f"PRAGMA query_only = {query_only}")

    async def begin() -> None:
        nonlocal query_only
        query_only = 1

    async def end() -> None:
        nonlocal query_only
        query_only = 0

    event.listen(Pool, "checkout", limit)
    try:
        yield Outage(url, url, begin, end)
    finally:
        event.remove(Pool, "checkout", limit)


@pytest.fixture
async def outage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Outage]:
    if request.param == "sqlite":
        yield Outage.of_file(tmp_path / "store.db")
        return
    if request.param == "read-only":
        with file_without_writes(tmp_path / "store.db") as spoiled:
            yield spoiled
        return
    url = make_url(request.getfixturevalue("postgres_url"))
    async with relay_to(url.port or 0) as relay:
        yield Outage(
            url.set(port=relay.port).render_as_string(hide_password=False),
            url.render_as_string(hide_password=False),
            relay.cut,
            relay.restore,
        )


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the store up after one more attempt, and look for lost runs often."""
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", PAUSE)
    monkeypatch.setattr(leases, "RENEW_SECONDS", PAUSE)
    for module in (admission, leases):  # a slow machine must not let one process take over the runs of the other
        monkeypatch.setattr(module, "LEASE_SECONDS", 600.0)


async def events_elsewhere(url: str, then: Callable[[Client], Awaitable[None]]) -> list[Json]:
    """Return the events of the run as another process on the same database has them."""
    clock = FakeClock()
    service = make_service(WaitingAgent(), Settings(store=SecretStr(url), scope=Scope.NONE), clock=clock)
    await service.open()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(service.aclose)
        stack.push_async_callback(service.drain, 0)
        other = InProcess(service, clock, by_session=False)
        await then(other)
        return await (await other.attach("t1", "r1")).rest()


async def up_to(stream: RunStream, *wanted: str) -> list[Json]:
    events: list[Json] = []
    while not events or events[-1]["type"] not in wanted:
        event = await stream.next()
        assert event is not None
        events.append(event)
    return events


def unstored(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("run end not stored")]


def shown(events: Sequence[Json]) -> list[tuple[str, str]]:
    """Return what a reader sees of each event, without times and the id of the request."""
    return [(event["type"], event.get("delta") or event.get("code") or "") for event in events]


@pytest.mark.parametrize(
    ("outage", "transport", "end"),
    [
        ("sqlite", "sse", "succeeds"),
        ("sqlite", "ws", "is cancelled"),
        ("sqlite", "ws", "continues"),
        ("read-only", "sse", "continues"),
        ("read-only", "ws", "succeeds"),
        ("postgres", "ws", "succeeds"),
        ("postgres", "sse", "is cancelled"),
    ],
    indirect=["outage"],
)
async def test_events_that_could_not_be_stored_are_shown_nowhere(
    serve: Serve, outage: Outage, transport: str, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = WaitingAgent(rest=" never stored")
    over_sse, over_ws = await serve(agent, store=outage.url, scope=Scope.NONE)
    client: Client = over_sse if transport == "sse" else over_ws
    stream = await client.start(ask())
    [run], seen = client.service.registry.by_key.values(), await up_to(stream, "TEXT_MESSAGE_CONTENT")
    await outage.begin()
    ends: dict[str, Callable[[], object]] = {
        "succeeds": agent.may_end.set,
        "is cancelled": run.cancel,
        "continues": partial(run.ctx.emit, " never stored"),
    }
    ends[end]()
    seen += await up_to(stream, *TERMINAL)  # a socket's next request would meet the outage, too
    assert (text(seen), outcome(seen)) == ("hi", "STORE_UNAVAILABLE")
    assert types(seen)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert unstored(caplog) == ["run end not stored run=r1 thread=t1"]
    await outage.end()
    await eventually(lambda: not client.service.registry.by_key)  # the end is stored, so the run is read there

    async def check_thread(other: Client) -> None:
        thread = await other.command({"command": {"type": "threads.get", "threadId": "t1"}})
        assert [message["content"] for message in thread["messages"]] == ["hi", "hi"]

    assert shown(await events_elsewhere(outage.direct, check_thread)) == shown(seen)
    assert await (await over_sse.attach("t1", "r1", stream.seqs[-1])).rest() == []
    agent.may_end.set()
    assert outcome(await client.run(ask(run="r2"))) == "success"


@pytest.mark.parametrize("stops", [False, True], ids=["the run ends", "the server stops"])
async def test_every_protocol_ends_a_reply_that_cannot_be_stored(
    serve_over: ServeOver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    stops: bool,
) -> None:
    if stops:
        monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", WAIT)
    outage, agent = Outage.of_file(tmp_path / "store.db"), WaitingAgent(rest=" never stored")
    site = await serve_over(agent, store=outage.url)
    dialogue = await site.begun()
    await outage.begin()
    if stops:
        await site.service.drain(0)
        await site.service.wait_for_readers(0)
    else:
        agent.may_end.set()
        await eventually(lambda: unstored(caplog))
    await outage.end()
    reply = await dialogue.reply()
    assert (reply.end, reply.text) == (ERROR, "hi")
    assert reply.code in {"STORE_UNAVAILABLE", None}
    assert "could not store" in reply.error
    assert len(unstored(caplog)) == 1


async def start_without_store(client: OverSse | OverWs, body: Json) -> RunStream:
    """Start a run or an ``attach`` without the request that follows on a socket, which would meet the outage, too."""
    if isinstance(client, OverSse):
        return await client.start(body)
    socket = await client.socket()
    await socket.send(body)
    await socket.control()  # of the attach; a refused run is answered here
    return WsStream(client.service, socket)


def corrupt(folder: Path) -> None:
    """Overwrite the database and its log while no transaction writes, because its commit would mend the log's index."""
    with closing(sqlite3.connect(folder / "store.db", timeout=60, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for file in folder.glob("store.db*"):
            with file.open("r+b") as raw:
                raw.write(b"\xff" * file.stat().st_size)


@pytest.mark.parametrize("transport", ["sse", "ws"])
async def test_a_database_that_is_corrupted_under_a_run_ends_it_for_all_readers_and_refuses_new_runs(
    serve: Serve, tmp_path: Path, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = WaitingAgent(rest=" never stored")
    over_sse, over_ws = await serve(agent, store=f"sqlite:///{tmp_path}/store.db")
    client = over_sse if transport == "sse" else over_ws
    stream = await client.start(ask())
    seen = await up_to(stream, "TEXT_MESSAGE_CONTENT")
    await asyncio.to_thread(corrupt, tmp_path)
    agent.may_end.set()
    seen += await up_to(stream, *TERMINAL)
    assert (text(seen), outcome(seen)) == ("hi", "STORE_UNAVAILABLE")
    assert unstored(caplog) == ["run end not stored run=r1 thread=t1"]
    attach = {"command": {"type": "attach", "threadId": "t1", "runId": "r1"}}
    assert await up_to(await start_without_store(client, attach), *TERMINAL) == seen
    with pytest.raises(Refused) as refused:
        await start_without_store(client, ask(run="r2"))
    assert refused.value.code == "STORE_UNAVAILABLE"
