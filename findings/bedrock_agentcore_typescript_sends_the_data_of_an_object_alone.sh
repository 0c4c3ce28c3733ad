#!/usr/bin/env bash
# bedrock-agentcore 0.4.4 for TypeScript: an object that an agent yields arrives whole, but if it has a property `data` then that alone arrives.
#
# `BedrockAgentCoreApp` sends what the agent's generator yields as the events of a stream, and encodes objects as JSON. An
# object with `data` it takes for a ready event instead: `data` is the payload, `id` and `event` become fields of the stream,
# and the rest is dropped without a word. Charts have `data`, and so have the images of MCP, of which the page gets base64 as
# a bare string and not its type. AWS's SDK for Python sends the same objects whole.
# Seen: {"type": "chart", "rows": [1, 2]} whole; with `data` for `rows` [1,2]; an image "QUJD"; bedrock-agentcore 1.25.0 for Python: all whole.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts bedrock-agentcore@0.4.4
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check bedrock-agentcore==1.25.0 2>/dev/null
cat >objects.json <<'JSON'
[
  {"type": "chart", "rows": [1, 2]},
  {"type": "chart", "data": [1, 2]},
  {"type": "image", "mimeType": "image/png", "data": "QUJD"}
]
JSON
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { BedrockAgentCoreApp } from "bedrock-agentcore/runtime";

const objects = JSON.parse(readFileSync("objects.json", "utf8"));
const port = await new Promise((resolve) => {
  const free = createServer().listen(0, "127.0.0.1", () => {
    const { port } = free.address();
    free.close(() => resolve(port));
  });
});
const app = new BedrockAgentCoreApp({
  config: { logging: { enabled: false } },
  invocationHandler: {
    async *process() {
      yield* objects;
    },
  },
});
app.run({ port, host: "127.0.0.1" });
const url = `http://127.0.0.1:${port}`;
while (!(await fetch(`${url}/ping`).catch(() => undefined))?.ok) await new Promise((resolve) => setTimeout(resolve, 50));
const headers = {
  Accept: "text/event-stream",
  "Content-Type": "application/json",
  "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "session",
};
const answer = await fetch(`${url}/invocations`, { method: "POST", headers, body: "{}" });
const lines = (await answer.text()).split("\n").filter(Boolean);
console.log("TypeScript:", lines);
assert.deepEqual(lines, ['data: {"type":"chart","rows":[1,2]}', "data: [1,2]", 'data: "QUJD"']);
process.exit();
JAVASCRIPT
cat >check.py <<'PYTHON'
import asyncio
import json
from pathlib import Path

from bedrock_agentcore import BedrockAgentCoreApp

objects = json.loads(Path("objects.json").read_text())
app = BedrockAgentCoreApp()


@app.entrypoint
async def stream(payload):
    for each in objects:
        yield each


async def main() -> None:
    requests = [{"type": "http.request", "body": b"{}"}]
    body = b""

    async def receive() -> dict[str, object]:
        return requests.pop() if requests else await asyncio.Future()

    async def send(message: dict) -> None:
        nonlocal body
        body += message.get("body", b"")

    headers = [(b"content-type", b"application/json")]
    await app({"type": "http", "method": "POST", "path": "/invocations", "headers": headers}, receive, send)
    lines = [line for line in body.decode().splitlines() if line]
    print("Python:    ", lines)
    assert [json.loads(line.removeprefix("data: ")) for line in lines] == objects


asyncio.run(main())
PYTHON
node --no-warnings check.js
venv/bin/python -W ignore check.py 2>/dev/null
echo "as described"
