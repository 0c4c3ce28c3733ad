"""A database that stands still, is gone or is full, and a bus that is gone, under real servers."""

import asyncio
import json
import re
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from sqlalchemy import make_url

from agui_container.engine.policy import CapacityLimits
from tests.behaviour.dialogues import ERROR, SUCCESS
from tests.behaviour.over_grpc import GRPC_PROTOCOLS, begin_dialogues, open_dialogue
from tests.engine.doubles import Json
from tests.replicas.conftest import Start
from tests.replicas.subscribers import Reading, all_of, as_shown, by_after, by_attach, over_sse
from tests.requirements import requirement
from tests.servers import Program
from tests.sockets.agents import piece
from tests.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input, say, text_of, wait_until
from tests.sockets.process import ServerProcess

TICKS = 200
"""Pieces of a run that goes on by itself, for two seconds."""


@pytest.fixture
async def closing() -> AsyncIterator[AsyncExitStack]:
    """Closes what a test opens."""
    async with AsyncExitStack() as stack:
        yield stack


def path_of(asked: Json) -> str:
    """Return the path of a run's status."""
    return f"/runs/{asked['runId']}?threadId={asked['threadId']}"


async def wait_for_end(server: ServerProcess, asked: Json) -> None:
    """Wait until the run has ended in its process, whatever has been stored of it."""

    async def ended() -> bool:
        return bool((await get(server.port, path_of(asked)))["status"] != "running")

    await wait_until(ended)


async def expect_refusal(server: ServerProcess) -> None:
    """Check that a new run is refused."""
    answer = await ask(server.port, post(run_input("hello")))
    assert (answer.status, answer.events[0]["code"]) == (503, "STORE_UNAVAILABLE")


async def expect_refusal_over(protocol: str, server: ServerProcess, closing: AsyncExitStack) -> None:
    """Check that a new run over a protocol of gRPC is refused."""
    refused = await open_dialogue(protocol, server.port, f"refused-{protocol}", closing).say("hello")
    assert (refused.end, refused.text) == (ERROR, "")
    assert refused.code in {"STORE_UNAVAILABLE", None}


async def expect_answers(server: ServerProcess, *paths: str) -> None:
    """Check that these routes do not wait for the store: a route that waits for it refuses in the end."""
    for path in paths:
        assert (await ask(server.port, request("GET", path))).status == 200


async def check_new_run(server: ServerProcess, **about: str) -> None:
    """Check that a new run is accepted and succeeds."""
    events = (await ask(server.port, post(run_input("hello", **about)))).events
    assert events[-1]["type"] == "RUN_FINISHED"


def ticks(count: int) -> str:
    """Return the text of such a run."""
    return "".join(f"{number} " for number in range(count))


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@requirement("durable.gap")
async def test_a_database_that_stands_still_for_a_moment_costs_no_event(start: Start, frail_postgres: Program) -> None:
    server = start(AGUI_STORE=frail_postgres.url)
    asked = run_input(f"tick {TICKS}")
    reader = await Reading.live(over_sse(server.port, post(asked)))
    frail_postgres.pause()
    await wait_for_end(server, asked)
    await expect_answers(server, "/ping", "/capabilities")
    assert not reader.is_over
    frail_postgres.resume()
    seen = await reader.whole()
    assert [each.seq for each in seen] == list(range(1, len(seen) + 1))
    assert text_of(json.loads(each.data) for each in seen) == ticks(TICKS)
    assert seen[-1].is_last
    await check_new_run(server, thread=asked["threadId"])
    assert server.faults == []


@requirement("durable.gone")
async def test_a_database_that_is_gone_refuses_and_ends_runs_until_it_is_back(
    start: Start, frail_postgres: Program
) -> None:
    server = start(AGUI_STORE=frail_postgres.url, AGUI_KEEPALIVE="1", AGUI_ON_DISCONNECT="continue")
    await check_new_run(server)
    before = server.memory
    asked, flood = run_input("churn"), run_input("bulk 1000000")
    churning = await (await HttpExchange.open(server.port, post(asked))).until(is_text)
    await (await (await HttpExchange.open(server.port, post(flood))).until(is_text)).close()
    frail_postgres.kill()
    ending = asyncio.create_task(churning.rest())
    await expect_refusal(server)
    why = f"error='the database at {make_url(frail_postgres.url).host}:"
    server.wait_for(lambda line: f"store unavailable {why}" in line and "OperationalError: " in line)
    while not ending.done():
        await expect_answers(server, "/ping")
        await asyncio.wait([ending], timeout=0.2)
    assert (await ending).events[-1]["code"] == "STORE_UNAVAILABLE"
    await wait_for_end(server, flood)
    assert server.memory - before < 4 * CapacityLimits().run_bytes
    frail_postgres.start()
    await check_new_run(server, thread=asked["threadId"])
    assert server.faults == []


# --- SQLite -----------------------------------------------------------------------------------------------------------


@requirement("durable.full")
async def test_a_disk_that_is_full_refuses_runs_and_loses_nothing(process: Start, closing: AsyncExitStack) -> None:
    server = process()
    kept, asked = run_input("calculate 6*7"), run_input(f"tick {TICKS}")
    before = await ask(server.port, post(kept))
    dialogues = await begin_dialogues(server.port, "churn", closing)
    reader = await Reading.live(over_sse(server.port, post(asked)))
    server.limit_files(1)
    replies = [asyncio.create_task(dialogue.reply()) for dialogue in dialogues]
    on_socket = await Reading.live(by_attach(server.port, asked["threadId"], asked["runId"], 0))
    await asyncio.gather(expect_refusal(server), *(expect_refusal_over(it, server, closing) for it in GRPC_PROTOCOLS))
    why = re.compile(r"store unavailable error='the database file .*: OperationalError: \w")
    server.wait_for(lambda line: why.search(line) is not None)
    await wait_for_end(server, asked)
    assert not reader.is_over
    assert not on_socket.is_over
    assert not any(reply.done() for reply in replies)
    about = f"/threads/{kept['threadId']}"
    await expect_answers(server, "/ping", "/runs", "/threads", about, f"{about}/transcript", path_of(kept))
    server.limit_files(resource.RLIM_INFINITY)
    seen, shown = await reader.whole(), await on_socket.whole()
    assert [each.data for each in shown] == as_shown([each.data for each in seen], shown)
    assert text_of(json.loads(each.data) for each in seen) == ticks(TICKS)
    assert await say(server.port, "release churn") == "released"
    texts = []
    for reply in await asyncio.gather(*replies):
        assert (reply.end, {*reply.text}) == (SUCCESS, {"x"})
        texts.append(reply.text)
    for dialogue in dialogues:
        assert (await dialogue.say("tick 1")).text == ticks(1)
    await check_new_run(server, thread=kept["threadId"])
    assert server.stop() == 0
    assert server.faults == []
    again = process()
    for dialogue, said in zip(dialogues, texts, strict=True):
        thread = await get(again.port, f"/threads/{dialogue.thread}")
        assert [it["content"] for it in thread["messages"] if it["role"] == "assistant"] == [said, ticks(1)]
    assert (await ask(again.port, post(kept))).body == before.body
    assert await all_of(over_sse(again.port, post(asked))) == seen


@requirement("durable.deleted")
async def test_a_file_that_was_deleted_is_noticed_in_the_log_and_ends_runs(process: Start, tmp_path: Path) -> None:
    server = process()
    asked = run_input("churn")
    churning = await (await HttpExchange.open(server.port, post(asked))).until(is_text)
    on_socket = await Reading.live(by_attach(server.port, asked["threadId"], asked["runId"], 0))
    for file in tmp_path.glob("runs.db*"):  # noqa: ASYNC240 - a moment on a local disk
        file.unlink()
    await expect_refusal(server)
    assert (await churning.rest()).events[-1]["code"] == "STORE_UNAVAILABLE"
    assert json.loads((await on_socket.whole())[-1].data)["code"] == "STORE_UNAVAILABLE"
    deleted = f"error='the database file {tmp_path}/runs.db was deleted or replaced"
    server.wait_for(lambda line: f"store unavailable {deleted}" in line)
    server.wait_for(lambda line: "lease job postponed" in line and deleted in line)
    assert not (tmp_path / "runs.db").exists()
    assert server.faults == []


# --- Redis ------------------------------------------------------------------------------------------------------------


@requirement("replica.bus")
async def test_without_a_bus_runs_go_on_and_are_read_everywhere(
    start: Start, postgres_url: str, frail_redis: Program
) -> None:
    here, there = (start(AGUI_STORE=postgres_url, AGUI_BUS=frail_redis.url) for _ in range(2))
    asked = run_input("halves 20")
    run, thread = asked["runId"], asked["threadId"]
    readers = [await Reading.live(over_sse(here.port, post(asked)))]
    readers += [await Reading.live(by(there.port, thread, run, 0)) for by in (by_after, by_attach)]
    frail_redis.kill()
    await say(here.port, f"release {run}")
    whole, by_sse, by_socket = [await reader.whole() for reader in readers]
    assert text_of(json.loads(each.data) for each in whole) == "".join(map(piece, range(40)))
    failed = re.compile(r"bus publish failed .*the bus at \S+ failed: ConnectionError: \w")
    here.wait_for(lambda line: failed.search(line) is not None)
    assert by_sse == whole
    assert [each.data for each in by_socket] == as_shown([each.data for each in whole], by_socket)
    live = run_input("tick 50")
    first = await Reading.live(over_sse(here.port, post(live)))
    assert await all_of(by_after(there.port, live["threadId"], live["runId"], 0)) == await first.whole()
    frail_redis.start()
    held = run_input("hold")
    first = await Reading.live(over_sse(here.port, post(held)))
    cancel = {"command": {"type": "cancel", "threadId": held["threadId"], "runId": held["runId"]}}
    await ask(there.port, post(cancel))
    assert b"cancelled" in (await first.whole())[-1].data
    assert [server.faults for server in (here, there)] == [[], []]
