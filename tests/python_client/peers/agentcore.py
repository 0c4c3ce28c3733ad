"""The AWS SDK's ``AGUIApp``. Its agent says how many runs it has begun, and what it was asked for."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
    ToolCallChunkEvent,
    ToolMessage,
    UserMessage,
)
from bedrock_agentcore.runtime import AGUIApp

app = AGUIApp()
runs = count(1)


async def agent(run_input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    """Answer ``use TOOL`` with a call of a client tool, ``wait`` after a pause, and everything else at once."""
    number, last = next(runs), run_input.messages[-1]
    yield RunStartedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)
    said = str(last.content) if isinstance(last, UserMessage | ToolMessage) else ""
    if said.startswith("use "):
        yield ToolCallChunkEvent(tool_call_id="call_0", tool_call_name=said.removeprefix("use "), delta='{"sides": ')
        yield ToolCallChunkEvent(delta="6}")
    else:
        yield StateSnapshotEvent(snapshot={"runs": 0})
        yield StateDeltaEvent.model_validate({"delta": [{"op": "replace", "path": "/runs", "value": number}]})
        yield TextMessageChunkEvent(message_id=f"m{number}", delta=f"run {number}: ")
        if said == "wait":
            await asyncio.sleep(600)
        yield TextMessageChunkEvent(delta=f"{said} of {len(run_input.messages)}")
    yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)


app.entrypoint(agent)
