#!/usr/bin/env bash
# strands-agents 1.62.0: a tool that awaits a cancelled task leaves no result and no error, and the agent goes on.
#
# Awaiting a task that somebody cancelled raises `asyncio.CancelledError`, which is no `Exception`. The default executor
# runs tools concurrently and hands on exceptions of the class `Exception` only. A call that ends otherwise just counts as
# done. Its `toolUse` then has no `toolResult`, neither in the next request to the model nor in any later one, since the
# history is kept so. With the sequential executor the same tool ends the run with its exception.
# Seen: concurrent: `end_turn`, an empty user message; two calls: one result; sequential: CancelledError, one request.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check strands-agents==1.62.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio

from strands import Agent, tool
from strands.models import Model
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor

requests: list[list[list[str]]] = []


class CallingModel(Model):
    def __init__(self, *tools: str) -> None:
        self.tools = tools

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *arguments, **options):
        raise NotImplementedError
        yield

    async def stream(self, messages, *arguments, **options):
        requests.append([[kind for block in message["content"] for kind in block] for message in messages])
        yield {"messageStart": {"role": "assistant"}}
        if len(messages) == 1:
            for name in self.tools:
                yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": name, "name": name}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Done."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}


@tool
async def report() -> str:
    """Wait for a job that another part of the program has cancelled."""
    job = asyncio.create_task(asyncio.sleep(60))
    job.cancel()
    await job
    return "reported"


@tool
async def clock() -> str:
    """Tell the time."""
    return "noon"


async def outcome(executor, *tools: str) -> tuple[str, list[list[list[str]]]]:
    requests.clear()
    agent = Agent(
        model=CallingModel(*tools), tools=[report, clock], tool_executor=executor, callback_handler=None
    )
    try:
        ending = (await agent.invoke_async("Report.")).stop_reason
    except asyncio.CancelledError as error:
        ending = type(error).__name__
    return ending, requests[1:]


async def main() -> None:
    alone = await outcome(ConcurrentToolExecutor(), "report")
    beside = await outcome(ConcurrentToolExecutor(), "report", "clock")
    sequential = await outcome(SequentialToolExecutor(), "report")
    print("concurrent, one call: ", alone)
    print("concurrent, two calls:", beside)
    print("sequential:           ", sequential)
    assert alone == ("end_turn", [[["text"], ["toolUse"], []]])
    assert beside == ("end_turn", [[["text"], ["toolUse", "toolUse"], ["toolResult"]]])
    assert sequential == ("CancelledError", [])


asyncio.run(main())
PYTHON
echo "as described"
