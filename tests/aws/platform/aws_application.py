"""An application of ``bedrock-agentcore`` with a short run; a process of its own.

python tests/aws/platform/aws_application.py AGUIApp|BedrockAgentCoreApp PORT
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from uuid import uuid4

from ag_ui.core import BaseEvent, RunAgentInput, RunFinishedEvent, RunStartedEvent, TextMessageChunkEvent
from bedrock_agentcore.runtime import AGUIApp, BedrockAgentCoreApp

RUN_SECONDS = 1.0
"""Longer than several pings of the check take on a slow machine."""


async def run(given: RunAgentInput) -> AsyncIterator[BaseEvent]:
    ids = {"thread_id": given.thread_id, "run_id": given.run_id}
    yield RunStartedEvent(**ids)
    message = str(uuid4())
    yield TextMessageChunkEvent(message_id=message, role="assistant", delta="hello")
    await asyncio.sleep(RUN_SECONDS)
    yield TextMessageChunkEvent(message_id=message, delta=", world")
    yield RunFinishedEvent(**ids)


async def answer(_: dict[str, object]) -> AsyncIterator[dict[str, str]]:
    yield {"data": "hello"}


def main() -> None:
    name, port = sys.argv[1:]
    app, handler = (AGUIApp(), run) if name == "AGUIApp" else (BedrockAgentCoreApp(), answer)
    app.entrypoint(handler)
    app.run(port=int(port))


if __name__ == "__main__":
    main()
