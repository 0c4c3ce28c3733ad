"""A bus that is gone, under real servers."""

import json
import re

import pytest

from tests.replicas.conftest import Start
from tests.replicas.subscribers import Reading, all_of, as_shown, by_after, by_attach, over_sse
from tests.server.sockets.agents import piece
from tests.server.sockets.client import ask, post, run_input, say, text_of
from tests.servers import Program

pytestmark = pytest.mark.services


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
