#!/usr/bin/env bash
# ag2 1.2.1: when a page sends the result of its tool, the model gets an empty user message behind that result.
#
# `AGUIStream` takes the user's messages at the end of the request for the current turn. After a front-end tool there are
# none, since the last message is the result of the tool. AG2 then begins the turn with a request of no parts, and makes a
# message of it. So the last thing that the model reads is a user who says nothing, and not the result that it waits for.
# Seen: roles system, user, assistant, tool, user, and the last content is []; in a turn without tools only system and user.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "ag2[ag-ui,openai]==1.2.1" ag-ui-protocol==1.0.0 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import json
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from ag2 import Agent
from ag2.ag_ui import AGUIStream
from ag2.config import OpenAIConfig
from ag_ui.core import AssistantMessage, FunctionCall, RunAgentInput, Tool, ToolCall, ToolMessage, UserMessage

requests: list[list[dict]] = []


class ModelServer(BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"])
        choice = {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "test", "choices": [choice]}
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *arguments):
        pass


async def request_for(stream: AGUIStream, messages: list) -> list[dict]:
    requests.clear()
    run = RunAgentInput(
        thread_id="thread",
        run_id=f"run-{len(messages)}",
        messages=messages,
        tools=[Tool(name="pick", description="Let the user pick.", parameters={"type": "object", "properties": {}})],
        context=[],
        state={},
        forwarded_props={},
    )
    async with aclosing(stream.dispatch(run)) as frames:
        async for _ in frames:
            pass
    return requests[0]


async def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), ModelServer)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    call = ToolCall(id="call", function=FunctionCall(name="pick", arguments="{}"))
    thread = [
        UserMessage(id="1", content="Let me pick a colour."),
        AssistantMessage(id="2", tool_calls=[call]),
        ToolMessage(id="3", tool_call_id="call", content="red"),
    ]
    async with AGUIStream(Agent("agent", config=OpenAIConfig(model="test", api_key="test", base_url=url))) as stream:
        without_result = await request_for(stream, thread[:1])
        with_result = await request_for(stream, thread)
    server.shutdown()
    print([message["role"] for message in without_result])
    print([message["role"] for message in with_result], with_result[-1])
    assert [message["role"] for message in without_result] == ["system", "user"]
    assert [message["role"] for message in with_result] == ["system", "user", "assistant", "tool", "user"]
    assert with_result[-1] == {"role": "user", "content": []}


asyncio.run(main())
PYTHON
echo "as described"
