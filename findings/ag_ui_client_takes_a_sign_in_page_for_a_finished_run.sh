#!/usr/bin/env bash
# @ag-ui/client 1.0.0: a run is a success when the answer is a web page, a JSON error or nothing at all, as long as its status is 200.
#
# Proxies answer with a sign-in page, gateways with JSON, and a server that dies in mid-answer with half of a message. The
# client does not look at the content type, drops text without a `data:` line, and accepts a stream without a last event.
# `runAgent` resolves, `onRunFailed` is not called, and `onRunFinalized` is. Only the missing RUN_FINISHED tells a page.
# Seen: page, JSON and nothing: no event, no message, no failure; half a message: it is kept as if it were complete.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/client@1.0.0
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";

let answer;
const server = createServer((request, response) => {
  response.setHeader("content-type", answer.type);
  response.end(answer.body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

async function run(type, body) {
  answer = { type, body };
  const agent = new HttpAgent({ url: `http://127.0.0.1:${server.address().port}/` });
  const calls = [];
  const { newMessages } = await agent.runAgent(
    {},
    {
      onRunFailed: () => void calls.push("failed"),
      onRunErrorEvent: () => void calls.push("error"),
      onRunFinishedEvent: () => void calls.push("finished"),
      onRunFinalized: () => void calls.push("finalized"),
    },
  );
  return { calls, texts: newMessages.map(({ content }) => content) };
}

const half = [
  { type: "RUN_STARTED", threadId: "thread", runId: "run" },
  { type: "TEXT_MESSAGE_START", messageId: "1", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "1", delta: "The dose is 1" },
];
const stream = half.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const page = await run("text/html", "<!doctype html><title>Sign in</title>");
const json = await run("application/json", JSON.stringify({ error: "quota exceeded" }));
const nothing = await run("text/event-stream", "");
const cut = await run("text/event-stream", stream);
server.close();
console.log({ page, json, nothing, cut });
for (const outcome of [page, json, nothing]) assert.deepEqual(outcome, { calls: ["finalized"], texts: [] });
assert.deepEqual(cut, { calls: ["finalized"], texts: ["The dose is 1"] });
JAVASCRIPT
node check.js
echo "as described"
