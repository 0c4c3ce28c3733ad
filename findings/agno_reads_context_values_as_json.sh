#!/usr/bin/env bash
# agno 3.1.10: AG-UI context that happens to be JSON reaches the model changed, and of two entries with one description one is lost.
#
# An entry of `RunAgentInput.context` has a description and a value, both strings, and descriptions may repeat. Agno makes a
# dictionary of the entries and decodes each value that parses as JSON. So a release "1.10" becomes the number 1.1, flat
# "7E2" becomes 700.0, and a customer whose name is null has none. Nothing is logged.
# Seen: the model reads "release": 1.1, "flat": 700.0, "surname": null, and only the second of two notes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check agno==3.1.10 ag-ui-protocol==1.0.0 openai==3.51.0 fastapi 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import asyncio
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from ag_ui.core import Context, RunAgentInput, UserMessage
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.os.interfaces.agui.router import run_entity

requests: list[list[dict]] = []


class ModelServer(BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"])
        choice = {"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *arguments):
        pass


async def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), ModelServer)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    sent = [
        ("release", "1.10"),
        ("flat", "7E2"),
        ("surname", "null"),
        ("town", "Ulm"),
        ("note", "Allergic to nuts."),
        ("note", "Prefers a window."),
    ]
    run = RunAgentInput(
        thread_id="thread",
        run_id="run",
        messages=[UserMessage(id="1", content="Hello")],
        tools=[],
        context=[Context(description=name, value=value) for name, value in sent],
        state=None,
        forwarded_props={},
    )
    agent = Agent(model=OpenAIChat(id="test", api_key="test", base_url=url, max_retries=0))
    events = [event async for event in run_entity(agent, run)]
    server.shutdown()
    text = requests[0][-1]["content"]
    read = json.loads(text[text.index("{") : text.rindex("}") + 1])
    print(read)
    assert events[-1].type == "RUN_FINISHED"
    assert read == {"release": 1.1, "flat": 700.0, "surname": None, "town": "Ulm", "note": "Prefers a window."}


asyncio.run(main())
PYTHON
echo "as described"
