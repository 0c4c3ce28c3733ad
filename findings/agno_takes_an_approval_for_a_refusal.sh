#!/usr/bin/env bash
# agno 3.1.10: a page that answers a confirmation with "yes", true or {"approved": true} has refused, and the model is told so.
#
# A tool with `requires_confirmation` ends the run with its call open. RUN_FINISHED has no interrupt and no schema of an
# answer, so a page sends the answer as the result of the call. `{"accepted": true}` runs the tool. Everything else counts
# as the user's refusal, also what other frameworks name an approval. It is no error: the run succeeds, the client gets no
# result of the call, and the model reads that the user has rejected it.
# Seen: the tool runs for {"accepted": true} alone; for 4 other answers 0 times, and "Function call was rejected by the user".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check agno==3.1.10 ag-ui-protocol==1.0.0 openai==3.51.0 fastapi 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import json
import logging
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from ag_ui.core import AssistantMessage, FunctionCall, RunAgentInput, ToolCall, ToolMessage, UserMessage
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.os.interfaces.agui.router import run_entity
from agno.tools import tool

logging.disable(logging.CRITICAL)
requests: list[list[dict]] = []
paid: list[int] = []
CALL = {"index": 0, "id": "call", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}


class ModelServer(BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"])
        delta = {"content": "Done."} if requests[-1][-1]["role"] == "tool" else {"tool_calls": [CALL]}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *arguments):
        pass


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return f"paid {amount}"


async def answered(url: str, answer: str) -> tuple[int, str, list[str]]:
    """Return how often the tool ran, its result for the model, and its results for the client."""
    paid.clear()
    agent = Agent(model=OpenAIChat(id="test", api_key="test", base_url=url), tools=[pay], db=InMemoryDb())
    call = ToolCall(id="call", function=FunctionCall(name="pay", arguments='{"amount": 5}'))
    thread = [
        UserMessage(id="1", content="Pay 5."),
        AssistantMessage(id="2", tool_calls=[call]),
        ToolMessage(id="3", tool_call_id="call", content=answer),
    ]
    for run_id, messages in (("asks", thread[:1]), ("answers", thread)):
        fields = {"tools": [], "context": [], "state": None, "forwarded_props": {}}
        run = RunAgentInput(thread_id="thread", run_id=run_id, messages=messages, **fields)
        events = [event async for event in run_entity(agent, run)]
        assert (events[-1].type, events[-1].outcome) == ("RUN_FINISHED", None)
    results = [event.content for event in events if event.type == "TOOL_CALL_RESULT"]
    return len(paid), requests[-1][-1]["content"], results


async def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), ModelServer)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    answers = ['{"accepted": true}', "yes", "true", '{"approved": true}', '{"confirmed": true}']
    outcomes = {answer: await answered(url, answer) for answer in answers}
    server.shutdown()
    print(*outcomes.items(), sep="\n")
    assert outcomes.pop('{"accepted": true}') == (1, "paid 5", ['"paid 5"'])
    assert list(outcomes.values()) == [(0, "Function call was rejected by the user", [])] * 4


asyncio.run(main())
PYTHON
echo "as described"
