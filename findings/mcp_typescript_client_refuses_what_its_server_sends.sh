#!/usr/bin/env bash
# @modelcontextprotocol/sdk 1.32.2: a result that its server has validated is an error for its own client, once that has listed the tools.
#
# `outputSchema` is a shape of zod. The server parses the tool's result with it, which fills defaults and drops unknown
# properties, then sends the result as it was before. The schema for clients is zod's schema of the parsed value: a property
# with a default is required, and no other properties are allowed. The client compares with that, and `callTool` throws
# away a result that the tool made and the server found good. It does so only after `listTools()`, so that the same call
# succeeds in a new client. The schema of arguments is zod's schema of what may be sent, and has neither of both.
# Seen: before `listTools()` two results; after it two McpErrors, "must have required property" and "must NOT have additional".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 zod@4.6.7
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import * as z from "zod";

const server = new McpServer({ name: "server", version: "1" });
const shape = { city: z.string(), unit: z.string().default("C") };
const results = { with_default: { city: "Bonn" }, with_more: { city: "Bonn", unit: "C", source: "station" } };
for (const [name, structuredContent] of Object.entries(results)) {
  const answer = async () => ({ content: [{ type: "text", text: "ok" }], structuredContent });
  server.registerTool(name, { inputSchema: shape, outputSchema: shape }, answer);
}
const [forClient, forServer] = InMemoryTransport.createLinkedPair();
await server.connect(forServer);
const client = new Client({ name: "client", version: "1" });
await client.connect(forClient);

async function call(name) {
  const result = client.callTool({ name, arguments: { city: "Bonn", source: "page" } });
  return result.then(({ structuredContent }) => structuredContent, (error) => error.message);
}

const before = { with_default: await call("with_default"), with_more: await call("with_more") };
const [{ inputSchema, outputSchema }] = (await client.listTools()).tools;
const after = { with_default: await call("with_default"), with_more: await call("with_more") };
await client.close();
console.log({ before, after });
assert.deepEqual(before, results);
assert.match(after.with_default, /output schema: data must have required property 'unit'/);
assert.match(after.with_more, /output schema: data must NOT have additional properties/);

console.log("required:", inputSchema.required, "for arguments,", outputSchema.required, "for results");
assert.deepEqual(inputSchema.required, ["city"]);
assert.deepEqual(outputSchema.required, ["city", "unit"]);
assert.deepEqual([inputSchema.additionalProperties, outputSchema.additionalProperties], [undefined, false]);
JAVASCRIPT
node check.js
echo "as described"
