"""Many runs at once, with /ping beside them: no mixed events, and no wait for a blocked thread."""

import asyncio

from tests.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input, say, wait_until
from tests.sockets.process import ServerProcess

RUNS = 200
STREAMS = 50
PINGS = 100


async def test_200_runs_at_once_really_overlap_and_each_is_whole(server: ServerProcess) -> None:
    """All are held open together, so the server has 200 at a time whatever the speed of the client."""
    documents = [run_input("hold") for _ in range(RUNS)]
    exchanges = [await HttpExchange.open(server.port, post(document)) for document in documents]
    for exchange in exchanges:
        await exchange.until(is_text)
    states = {run["runId"]: run["status"] for run in (await get(server.port, "/runs"))["runs"]}
    assert {states[document["runId"]] for document in documents} == {"running"}
    for document in documents:
        await say(server.port, f"release {document['runId']}")
    for exchange in exchanges:
        assert (await exchange.rest()).text == "before after"
        await exchange.close()


async def test_ping_answers_busy_while_a_tool_blocks_and_50_runs_stream(server: ServerProcess) -> None:
    tool = await HttpExchange.open(server.port, post(run_input("call block {}")))
    await tool.until(lambda event: event["type"] == "TOOL_CALL_END")
    streams = [
        await (await HttpExchange.open(server.port, post(run_input("churn")))).until(is_text) for _ in range(STREAMS)
    ]
    reading = [asyncio.create_task(stream.rest()) for stream in streams]

    for _ in range(PINGS):
        answer = await ask(server.port, request("GET", "/ping"))
        assert (answer.status, answer.json()["status"]) == (200, "HealthyBusy")
    assert not any(task.done() for task in reading)

    await say(server.port, "release churn")
    await say(server.port, "release block")
    for stream in await asyncio.gather(*reading):
        assert set(stream.text) == {"x"}
        assert stream.events[-1]["type"] == "RUN_FINISHED"
    assert "released" in (await tool.rest()).text

    async def idle() -> bool:
        return bool((await get(server.port, "/ping"))["status"] == "Healthy")

    await wait_until(idle)
