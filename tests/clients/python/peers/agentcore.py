"""The AWS SDK's ``AGUIApp``. Its agent says how many runs it has begun, and what it was asked for."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from ag_ui import core as ag
from bedrock_agentcore.runtime import AGUIApp

app = AGUIApp()
runs = count(1)


async def agent(run_input: ag.RunAgentInput) -> AsyncIterator[ag.BaseEvent]:
    number, last = next(runs), run_input.messages[-1]
    yield ag.RunStartedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)
    said = str(last.content) if isinstance(last, ag.UserMessage | ag.ToolMessage) else ""
    if said.startswith("use "):
        yield ag.ToolCallChunkEvent(tool_call_id="call_0", tool_call_name=said.removeprefix("use "), delta='{"sides": ')
        yield ag.ToolCallChunkEvent(delta="6}")
    else:
        yield ag.StateSnapshotEvent(snapshot={"runs": 0})
        yield ag.StateDeltaEvent.model_validate({"delta": [{"op": "replace", "path": "/runs", "value": number}]})
        yield ag.TextMessageChunkEvent(message_id=f"m{number}", delta=f"run {number}: ")
        if said == "wait":
            await asyncio.sleep(600)
        yield ag.TextMessageChunkEvent(delta=f"{said} of {len(run_input.messages)}")
    yield ag.RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)


app.entrypoint(agent)
