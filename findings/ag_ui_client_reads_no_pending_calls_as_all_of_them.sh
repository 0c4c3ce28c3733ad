#!/usr/bin/env bash
# @ag-ui/client 1.0.0: a page whose server lists no pending call is given a list of all open calls.
#
# A run that succeeds may name the calls that the page must answer, in `outcome.pendingToolCallIds`. A list with one of two
# open calls is passed on as it is. An empty list is not: it means the same as no list, and the client counts the calls
# without a result itself. A server whose call is answered from elsewhere in a later run can therefore not say so, and a page
# that runs what is pending runs that call too. @ag-ui/proto 1.0.0 drops the empty list, so a client could not know of it.
# Seen: [] gives ["one", "two"], as does no list; ["one"] gives ["one"]; after protobuf the outcome has no list.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/client@1.0.0 @ag-ui/proto@1.0.0 rxjs@7.8.1
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { AbstractAgent, EventType } from "@ag-ui/client";
import { decode, encode } from "@ag-ui/proto";
import { of } from "rxjs";

function call(toolCallId) {
  return [
    { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: "book" },
    { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: "{}" },
    { type: EventType.TOOL_CALL_END, toolCallId },
  ];
}

class Agent extends AbstractAgent {
  outcome;

  run({ threadId, runId }) {
    return of(
      { type: EventType.RUN_STARTED, threadId, runId },
      ...call("one"),
      ...call("two"),
      { type: EventType.RUN_FINISHED, threadId, runId, outcome: this.outcome },
    );
  }
}

async function pendingAfter(outcome) {
  const agent = new Agent();
  agent.outcome = outcome;
  let pending;
  await agent.runAgent({}, { onRunFinishedEvent: ({ pendingToolCallIds }) => void (pending = pendingToolCallIds) });
  return pending;
}

const noList = await pendingAfter({ type: "success" });
const empty = await pendingAfter({ type: "success", pendingToolCallIds: [] });
const first = await pendingAfter({ type: "success", pendingToolCallIds: ["one"] });
console.log({ noList, empty, first });
assert.deepEqual(noList, ["one", "two"]);
assert.deepEqual(empty, ["one", "two"]);
assert.deepEqual(first, ["one"]);

const outcome = { type: "success", pendingToolCallIds: [] };
const finished = decode(encode({ type: EventType.RUN_FINISHED, threadId: "thread", runId: "run", outcome }));
console.log("after protobuf:", finished.outcome);
assert.deepEqual(finished.outcome, { type: "success" });
JAVASCRIPT
node check.js
echo "as described"
