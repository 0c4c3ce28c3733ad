#!/usr/bin/env bash
# @ag-ui/mcp-apps-middleware 0.1.1 with @ag-ui/client 1.0.0: a call that the middleware has answered is still reported as pending.
#
# The middleware holds RUN_FINISHED back, runs the tool of the MCP app, sends TOOL_CALL_RESULT, and then passes RUN_FINISHED
# on unchanged. An agent of AG-UI 1.0 names its open calls in `outcome.pendingToolCallIds`, and the client prefers that list
# to its own count. A page that runs its pending tools, as the field is meant, therefore finds a call that has a result.
# Seen: result "sunny" for `call`, and pending ["call"]; from an agent that leaves the field out, the same and pending [].
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/mcp-apps-middleware@0.1.1 @ag-ui/client@1.0.0 @modelcontextprotocol/sdk@1.32.2 rxjs@7.8.1
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { AbstractAgent, EventType } from "@ag-ui/client";
import { MCPAppsMiddleware } from "@ag-ui/mcp-apps-middleware";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { of } from "rxjs";

const server = createServer(async (request, response) => {
  const weather = new McpServer({ name: "weather", version: "1" });
  const _meta = { ui: { resourceUri: "ui://weather" } };
  weather.registerTool("weather", { description: "Tell the weather.", _meta }, () => ({ content: [{ type: "text", text: "sunny" }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await weather.connect(transport);
  await transport.handleRequest(request, response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const mcpServers = [{ type: "http", url: `http://127.0.0.1:${server.address().port}/mcp`, serverId: "weather" }];

class Agent extends AbstractAgent {
  outcome;

  run({ threadId, runId, tools }) {
    assert.deepEqual(tools.map((tool) => tool.name), ["weather"]);
    return of(
      { type: EventType.RUN_STARTED, threadId, runId },
      { type: EventType.TOOL_CALL_START, toolCallId: "call", toolCallName: "weather" },
      { type: EventType.TOOL_CALL_ARGS, toolCallId: "call", delta: "{}" },
      { type: EventType.TOOL_CALL_END, toolCallId: "call" },
      { type: EventType.RUN_FINISHED, threadId, runId, outcome: this.outcome },
    );
  }
}

async function run(outcome) {
  const agent = new Agent();
  agent.outcome = outcome;
  agent.use(new MCPAppsMiddleware({ mcpServers }));
  let pending;
  await agent.runAgent({}, { onRunFinishedEvent: ({ pendingToolCallIds }) => void (pending = pendingToolCallIds) });
  const results = agent.messages.filter(({ role }) => role === "tool").map(({ toolCallId, content }) => [toolCallId, content]);
  return { results, pending };
}

const named = await run({ type: "success", pendingToolCallIds: ["call"] });
const unnamed = await run({ type: "success" });
server.close();
console.log("the agent names its open calls:", JSON.stringify(named));
console.log("the agent does not:            ", JSON.stringify(unnamed));
assert.deepEqual(named, { results: [["call", "sunny"]], pending: ["call"] });
assert.deepEqual(unnamed, { results: [["call", "sunny"]], pending: [] });
JAVASCRIPT
node check.js
echo "as described"
