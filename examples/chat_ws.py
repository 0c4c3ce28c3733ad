"""A WebSocket client in a few lines: send one message, print the answer as it streams.

python examples/chat_ws.py "what time is it"
python examples/chat_ws.py "think about rain" ws://127.0.0.1:9000/ws
"""

import asyncio
import json
import sys
from uuid import uuid4

from websockets.asyncio.client import connect

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


async def chat(message: str, url: str = "ws://127.0.0.1:8080/ws") -> None:
    """Start a run and print its text until its terminal event."""
    run_input = {
        "threadId": str(uuid4()),
        "runId": str(uuid4()),
        "messages": [{"id": str(uuid4()), "role": "user", "content": message}],
    }
    async with connect(url) as socket:
        await socket.send(json.dumps(run_input))
        async for frame in socket:
            event = json.loads(frame)
            # Answers to commands, and errors in what was sent, have "control" in place of "type".
            if event.get("type") == "TEXT_MESSAGE_CONTENT":
                print(event["delta"], end="", flush=True)
            elif event.get("type") == "RUN_ERROR" or "control" in event:
                print(event, file=sys.stderr)
            if event.get("type") in TERMINAL or "control" in event:
                break
    print()


if __name__ == "__main__":
    asyncio.run(chat(*sys.argv[1:] or ["what time is it"]))
