"""A run on one replica is read, ended, answered and survived by another."""

import asyncio
import json
import subprocess
import sys

from tests.engine.doubles import Json
from tests.replicas.conftest import Start
from tests.replicas.subscribers import Piece, Reading, as_shown, by_attach, by_last_event_id, over_sse
from tests.requirements import requirement
from tests.sockets.client import HttpExchange, ask, get, is_last, is_text, post, request, run_input, text_of
from tests.sockets.process import ServerProcess, environment
from tests.websocket import receive_frame, receive_until, socket_to


def events_at(run: str, thread: str, after: int = 0) -> bytes:
    return request("GET", f"/runs/{run}/events?threadId={thread}&after={after}")


@requirement("replica.read")
async def test_a_run_is_read_live_through_another_replica(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("stream 300")
    run, thread = asked["runId"], asked["threadId"]
    first = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    second = await (await HttpExchange.open(there.port, events_at(run, thread))).rest()
    await first.rest()
    assert second.events == first.events
    assert text_of(second.events) == "hello world, " * 300


@requirement("replica.read")
async def test_a_reader_goes_on_elsewhere_where_it_left_off(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("stream 500")
    run, thread = asked["runId"], asked["threadId"]
    whole = (await ask(here.port, post(asked))).events
    seen: list[object] = []
    for number in range(50):
        port = (here, there)[number % 2].port
        seen += (await ask(port, events_at(run, thread, len(seen)))).events[:10]
    assert seen == whole[:500]


@requirement("replica.retry")
async def test_a_retry_elsewhere_reads_the_run_and_runs_nothing(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("what time is it")
    first = await ask(here.port, post(asked))
    assert (await ask(there.port, post(asked))).body == first.body


async def by_command(port: int, asked: Json) -> Json:
    """Cancel with a command in a run of its own."""
    command = {"command": {"type": "cancel", "threadId": asked["threadId"], "runId": asked["runId"]}}
    told: Json = (await ask(port, post(command))).events[1]["value"]
    return told


async def by_route(port: int, asked: Json) -> Json:
    """Cancel with the route of the run."""
    sent = request("POST", f"/runs/{asked['runId']}/cancel?threadId={asked['threadId']}")
    told: Json = (await ask(port, sent)).json()
    return told


async def by_socket(port: int, asked: Json) -> Json:
    """Cancel with a frame."""
    async with socket_to(port) as connection:
        command = {"type": "cancel", "threadId": asked["threadId"], "runId": asked["runId"]}
        await connection.send(json.dumps({"command": command, "id": 1}))
        return await receive_frame(connection)


@requirement("replica.cancel")
async def test_a_run_is_cancelled_through_another_replica(replica: Start) -> None:
    here, there = replica(), replica()
    for cancel in (by_command, by_route, by_socket):
        asked = run_input("hold")
        held = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
        told = await cancel(there.port, asked)
        await held.until(is_last)
        assert told["runId"] == asked["runId"]
        assert held.events[-1]["outcome"] == {"type": "cancelled"}
        assert (await cancel(there.port, asked))["status"] == "cancelled"


@requirement("replica.socket")
async def test_a_socket_attaches_to_a_run_of_another_replica(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("hold")
    held = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    attach = {"command": {"type": "attach", "threadId": asked["threadId"], "runId": asked["runId"]}}
    async with socket_to(there.port) as connection:
        await connection.send(json.dumps(attach))
        await receive_until(connection, is_text)
        await ask(here.port, post(run_input(f"release {asked['runId']}")))
        heard = await receive_until(connection, is_last)
    await held.rest()
    assert heard[-1]["type"] == "RUN_FINISHED"


@requirement("replica.thread")
async def test_a_thread_is_busy_on_every_replica(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("hold")
    held = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    refused = await ask(there.port, post(run_input("hello", thread=asked["threadId"])))
    assert (refused.status, refused.events[0]["code"]) == (409, "THREAD_BUSY")
    taken = run_input("hello", thread=asked["threadId"], forwardedProps={"onBusy": "interrupt"})
    answered = await ask(there.port, post(taken))
    await held.rest()
    assert held.events[-1]["outcome"] == {"type": "cancelled"}
    assert answered.events[-1]["type"] == "RUN_FINISHED"


@requirement("replica.connect")
async def test_a_run_without_messages_shows_the_thread(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("calculate 6*7")
    await ask(here.port, post(asked))
    later = run_input("", thread=asked["threadId"])
    later["messages"] = []
    shown = (await ask(there.port, post(later))).events
    assert [event["type"] for event in shown] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    said = shown[1]["messages"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "assistant"]
    assert "42" in said[-1]["content"]


@requirement("replica.lost")
async def test_when_a_replica_dies_its_runs_end_for_every_reader(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("hold")
    held = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    reading = await HttpExchange.open(there.port, events_at(asked["runId"], asked["threadId"]))
    await reading.until(is_text)
    here.kill()
    await reading.until(is_last)
    assert (reading.events[-1]["type"], reading.events[-1]["code"]) == ("RUN_ERROR", "RUN_LOST")
    assert reading.events[: len(held.events)] == held.events
    assert [event["type"] for event in reading.events][-2] == "TEXT_MESSAGE_END"
    answered = await ask(there.port, post(run_input("hello", thread=asked["threadId"])))
    assert answered.events[-1]["type"] == "RUN_FINISHED"
    assert (await get(there.port, f"/runs/{asked['runId']}?threadId={asked['threadId']}"))["status"] == "error"


@requirement("durable.restart")
async def test_runs_and_threads_outlive_the_process(process: Start) -> None:
    with process() as before:
        asked = run_input("stream 100")
        whole = await ask(before.port, post(asked))
        assert before.stop() == 0
    after = process()
    assert (await ask(after.port, events_at(asked["runId"], asked["threadId"]))).body == whole.body
    assert (await ask(after.port, post(asked))).body == whole.body


@requirement("replica.history")
async def test_an_agent_sees_what_was_said_on_another_replica(replica: Start) -> None:
    here, there = replica(), replica()
    asked = run_input("calculate 6*7")
    await ask(here.port, post(asked))
    later = await ask(there.port, post(run_input("hello", thread=asked["threadId"])))
    usage = later.events[-1]["usage"][0]
    alone = (await ask(there.port, post(run_input("hello")))).events[-1]["usage"][0]
    assert usage["inputTokens"] > alone["inputTokens"] + 10


@requirement("operator.cancel")
async def test_an_operator_cancels_a_run(replica: Start, postgres_url: str, redis_url: str) -> None:
    here = replica()
    asked = run_input("hold")
    held = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    settings = environment({"AGUI_STORE": postgres_url, "AGUI_BUS": redis_url})
    command = (sys.executable, "-m", "agui_container", "runs", "cancel", "everybody", asked["threadId"], asked["runId"])
    done = await asyncio.to_thread(subprocess.run, command, env=settings, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["status"] == "running"
    await held.until(is_last)
    assert held.events[-1]["outcome"] == {"type": "cancelled"}


# --- three replicas ---------------------------------------------------------------------------------------------------


async def follow_live(asked: Json, second: ServerProcess, third: ServerProcess) -> tuple[Reading, Reading]:
    """Readers of a live run: over SSE through one server, over WebSocket through another."""
    run, thread = asked["runId"], asked["threadId"]
    over_sse = await Reading.live(by_last_event_id(second.port, thread, run, 0))
    return over_sse, await Reading.live(by_attach(third.port, thread, run, 0))


def assert_same(by_sse: list[Piece], by_socket: list[Piece]) -> Json:
    """Both have seen the same run to its end. Gives the end."""
    events = [piece.data for piece in by_sse]
    assert [piece.seq for piece in by_sse] == list(range(1, len(events) + 1))
    assert [piece.data for piece in by_socket] == as_shown(events, by_socket)
    assert by_socket[-1].seq == len(events)
    end: Json = json.loads(events[-1])
    return end


@requirement("replica.read", "replica.cancel", "replica.lost", "replica.socket")
async def test_a_run_is_followed_through_two_others_until_one_cancels_it_or_its_own_dies(replica: Start) -> None:
    here, second, third = replica(), replica(), replica()

    asked = run_input("hold")
    first = await Reading.live(over_sse(here.port, post(asked)))
    by_sse, by_socket = await follow_live(asked, second, third)
    cancel = {"command": {"type": "cancel", "threadId": asked["threadId"], "runId": asked["runId"]}}
    async with socket_to(third.port) as connection:
        await connection.send(json.dumps(cancel))
        assert (await receive_frame(connection))["control"] == "result"
    seen = await by_sse.whole()
    assert assert_same(seen, await by_socket.whole())["outcome"] == {"type": "cancelled"}
    assert await first.whole() == seen

    asked = run_input("hold")
    held = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    by_sse, by_socket = await follow_live(asked, second, third)
    here.kill()
    seen = await by_sse.whole()
    assert assert_same(seen, await by_socket.whole())["code"] == "RUN_LOST"
    assert [json.loads(piece.data) for piece in seen[: len(held.events)]] == held.events
    for server in (second, third):
        server.stop()  # its log is complete then
    assert sum("ending lost run" in line for server in (second, third) for line in server.log) == 1
