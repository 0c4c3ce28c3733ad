#!/usr/bin/env bash
# @ag-ui/client 1.0.0: a page that draws a tool call while it streams gets `partialToolCallArgs` as a text or as {}, and never as the object of its type.
#
# `onToolCallArgsEvent` has `partialToolCallArgs: Record<string, any>`, the arguments so far. The client takes them from
# `untruncate-json`, which completes a text and does not parse it. So a page from CommonJS gets a text, whose properties are
# undefined. As an ES module in Node the same import is an object and no function; the client catches the TypeError and
# passes {}. Both are one piece late, since the piece of the event is added after the call. `toolCallBuffer` and `delta` are right.
# Seen: CommonJS "", '{"city": "Bonn"}'; module {}, {}; both at the end of the call { city: "Bonn", days: 12 }.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/client@1.0.0 rxjs@7.8.1
cat >arguments.cjs <<'JAVASCRIPT'
module.exports = async function argumentsSeen({ AbstractAgent, EventType }, { of }) {
  class Agent extends AbstractAgent {
    run({ threadId, runId }) {
      return of(
        { type: EventType.RUN_STARTED, threadId, runId },
        { type: EventType.TOOL_CALL_START, toolCallId: "call", toolCallName: "forecast" },
        { type: EventType.TOOL_CALL_ARGS, toolCallId: "call", delta: '{"city": "Bonn' },
        { type: EventType.TOOL_CALL_ARGS, toolCallId: "call", delta: '", "days": 12}' },
        { type: EventType.TOOL_CALL_END, toolCallId: "call" },
        { type: EventType.RUN_FINISHED, threadId, runId },
      );
    }
  }
  const seen = { partial: [], text: [], complete: null };
  await new Agent().runAgent(
    {},
    {
      onToolCallArgsEvent({ event, partialToolCallArgs, toolCallBuffer }) {
        seen.partial.push(partialToolCallArgs);
        seen.text.push(toolCallBuffer + event.delta);
      },
      onToolCallEndEvent: ({ toolCallArgs }) => void (seen.complete = toolCallArgs),
    },
  );
  return seen;
};
JAVASCRIPT
cat >check.mjs <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import * as client from "@ag-ui/client";
import * as rxjs from "rxjs";
import argumentsSeen from "./arguments.cjs";

const require = createRequire(import.meta.url);
const module = await argumentsSeen(client, rxjs);
const commonJs = await argumentsSeen(require("@ag-ui/client"), require("rxjs"));
console.log({ module, commonJs });
assert.deepEqual(module.partial, [{}, {}]);
assert.deepEqual(commonJs.partial, ["", '{"city": "Bonn"}']);
for (const { text, complete } of [module, commonJs]) {
  assert.deepEqual(text, ['{"city": "Bonn', '{"city": "Bonn", "days": 12}']);
  assert.deepEqual(complete, { city: "Bonn", days: 12 });
}
JAVASCRIPT
node check.mjs
echo "as described"
