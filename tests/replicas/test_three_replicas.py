"""One replica runs, a second is read over SSE and a third over WebSocket: all readers see the same bytes."""

import json

from tests.engine.doubles import Json
from tests.replicas.conftest import Start
from tests.replicas.subscribers import Piece, Reading, as_shown, by_attach, by_last_event_id, over_sse
from tests.requirements import requirement
from tests.sockets.client import HttpExchange, is_text, post, run_input
from tests.sockets.process import ServerProcess
from tests.websocket import receive_frame, socket_to


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
