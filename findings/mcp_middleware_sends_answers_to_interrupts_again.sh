#!/usr/bin/env bash
# @ag-ui/mcp-middleware 0.0.2 with @ag-ui/client 1.0.0: a person answers once, and the agent gets the answer with every further run.
#
# When the model calls a tool of an MCP server, the middleware runs it and sends the agent a new run with the result. That
# run is a copy of the one before, with its `resume`. So if the call came after an answer to an interrupt, the agent is
# told the answer again, under another run id, for an interrupt that it no longer has. It repeats for each round of calls.
# A server may refuse such a run, or take it for a new answer. Without tools of MCP nothing is repeated.
# Seen: one answer and two rounds of tools: 3 runs with the same `resume`; the page has seen one RUN_STARTED for them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/mcp-middleware@0.0.2 @ag-ui/client@1.0.0 @modelcontextprotocol/sdk@1.32.2 rxjs@7.8.1
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { AbstractAgent, EventType } from "@ag-ui/client";
import { MCPMiddleware } from "@ag-ui/mcp-middleware";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { of } from "rxjs";

const server = createServer(async (request, response) => {
  const shop = new McpServer({ name: "shop", version: "1" });
  shop.registerTool("stock", { description: "Count what is there." }, () => ({ content: [{ type: "text", text: "3" }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await shop.connect(transport);
  await transport.handleRequest(request, response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

/** Asks a person, then calls the tool twice, one call after the other, if it is offered. */
class Agent extends AbstractAgent {
  answers = [];

  run({ threadId, runId, messages, tools, resume }) {
    this.answers.push((resume ?? []).map(({ interruptId, payload }) => `${interruptId}: ${payload.approved}`));
    const results = messages.filter(({ role }) => role === "tool").length;
    const started = { type: EventType.RUN_STARTED, threadId, runId };
    const finished = { type: EventType.RUN_FINISHED, threadId, runId };
    if (this.answers.length === 1) return of(started, { ...finished, outcome: { type: "interrupt", interrupts: [{ id: "order", reason: "ask" }] } });
    if (tools.length === 0 || results === 2) return of(started, finished);
    const toolCallId = `call-${results}`;
    return of(
      started,
      { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: tools[0].name },
      { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{}" },
      { type: EventType.TOOL_CALL_END, toolCallId },
      finished,
    );
  }
}

async function run(mcpServers) {
  const agent = new Agent({ initialMessages: [{ id: "user", role: "user", content: "Order one." }] });
  if (mcpServers) agent.use(new MCPMiddleware(mcpServers));
  const started = [];
  agent.subscribe({ onRunStartedEvent: ({ event }) => void started.push(event.runId) });
  await agent.runAgent({ runId: "question" });
  await agent.runAgent({ runId: "answer", resume: [{ interruptId: "order", status: "resolved", payload: { approved: true } }] });
  return { answers: agent.answers, started };
}

const url = `http://127.0.0.1:${server.address().port}/mcp`;
const beside = await run([{ type: "http", url, serverId: "shop" }]);
const without = await run();
server.close();
console.log("with MCP:   ", JSON.stringify(beside));
console.log("without MCP:", JSON.stringify(without));
const answer = ["order: true"];
assert.deepEqual(beside, { answers: [[], answer, answer, answer], started: ["question", "answer"] });
assert.deepEqual(without, { answers: [[], answer], started: ["question", "answer"] });
JAVASCRIPT
node check.js
echo "as described"
