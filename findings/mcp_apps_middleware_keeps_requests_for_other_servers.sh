#!/usr/bin/env bash
# @ag-ui/mcp-apps-middleware 0.1.1: of two middlewares, only the outer one's MCP server can be reached by an app.
#
# An app's request is a run with `forwardedProps.__proxiedMCPRequest`. The middleware answers every such run itself, also one
# for a server that it was not given, so neither a second middleware nor the agent behind it gets the request. The answer
# then is RUN_FINISHED with an error in `result`, not RUN_ERROR. Every answer has the run id in the place of the thread id.
# Seen: a `ping` for `here` succeeds with its middleware outside; with the order turned round, "Unknown server: here".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/mcp-apps-middleware@0.1.1 @ag-ui/client@1.0.0 @modelcontextprotocol/sdk@1.32.2 rxjs@7.8.1
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { AbstractAgent } from "@ag-ui/client";
import { MCPAppsMiddleware } from "@ag-ui/mcp-apps-middleware";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { EMPTY } from "rxjs";

let requests = 0;
const server = createServer(async (request, response) => {
  requests += 1;
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await new McpServer({ name: "here", version: "1" }).connect(transport);
  await transport.handleRequest(request, response);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

let agentRuns = 0;
class Agent extends AbstractAgent {
  run() {
    agentRuns += 1;
    return EMPTY;
  }
}

const here = { type: "http", url: `http://127.0.0.1:${server.address().port}/mcp`, serverId: "here" };
const elsewhere = { type: "http", url: "http://127.0.0.1:1/mcp", serverId: "elsewhere" };

async function answerTo(servers) {
  const agent = new Agent({ threadId: "thread" });
  agent.use(...servers.map((one) => new MCPAppsMiddleware({ mcpServers: [one] })));
  const events = [];
  const request = { serverId: "here", serverHash: "", method: "ping" };
  await agent.runAgent(
    { runId: "run", forwardedProps: { __proxiedMCPRequest: request } },
    { onEvent: ({ event }) => void events.push(event) },
  );
  return events.map(({ type, threadId, result }) => [type, threadId, result]);
}

const outside = await answerTo([here, elsewhere]);
const requestsOutside = requests;
const inside = await answerTo([elsewhere, here]);
server.close();
console.log("its middleware outside:", JSON.stringify(outside));
console.log("its middleware inside: ", JSON.stringify(inside));
assert.deepEqual(outside, [["RUN_STARTED", "run", undefined], ["RUN_FINISHED", "run", {}]]);
assert.deepEqual(inside, [["RUN_STARTED", "run", undefined], ["RUN_FINISHED", "run", { error: "Unknown server: here" }]]);
assert.ok(requestsOutside > 0);
assert.equal(requests, requestsOutside);
assert.equal(agentRuns, 0);
JAVASCRIPT
node check.js
echo "as described"
