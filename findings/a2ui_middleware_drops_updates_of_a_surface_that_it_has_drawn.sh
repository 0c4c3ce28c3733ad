#!/usr/bin/env bash
# @ag-ui/a2ui-middleware 0.0.10 with @ag-ui/client 1.0.0: once a run has drawn a surface by `render_a2ui`, no other tool of the run can update it.
#
# The middleware draws a surface while the model still writes the call of `render_a2ui`. It notes the surface, so as not to
# draw it twice when the call's own result repeats its operations. It looks at the results of all other tools in the same
# way, and leaves out every operation for a surface of that list. A tool that fills in what has changed, or deletes the
# surface, therefore does nothing on the page. No event and no warning says so. In the next run the same result is passed on.
# Seen: update in the same run: 0 activities of it, the page has "Bonn"; for another surface, or a run later: 1, with "Ulm".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/a2ui-middleware@0.0.10 @ag-ui/client@1.0.0 rxjs@7.8.1
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { A2UIMiddleware } from "@ag-ui/a2ui-middleware";
import { AbstractAgent, EventType } from "@ag-ui/client";
import { from } from "rxjs";

const components = [
  { id: "root", component: "Column", children: ["city"] },
  { id: "city", component: "Text", text: { path: "/city" } },
];
const draw = (surfaceId) => ["render_a2ui", { surfaceId, components, data: { city: "Bonn" } }, { status: "rendered" }];
const update = (surfaceId) => [
  "move",
  {},
  { a2ui_operations: [{ version: "v0.9", updateDataModel: { surfaceId, path: "/city", value: "Ulm" } }] },
];

/** Makes the calls of each run, one after the other, each with its result. */
class Agent extends AbstractAgent {
  constructor(runs) {
    super();
    this.runs = runs;
  }

  run({ threadId, runId }) {
    const calls = this.runs.shift().flatMap(([toolCallName, args, result], index) => {
      const toolCallId = `${runId}-${index}`;
      return [
        { type: EventType.TOOL_CALL_START, toolCallId, toolCallName },
        { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: JSON.stringify(args) },
        { type: EventType.TOOL_CALL_END, toolCallId },
        { type: EventType.TOOL_CALL_RESULT, toolCallId, messageId: `result-${toolCallId}`, content: JSON.stringify(result) },
      ];
    });
    return from([{ type: EventType.RUN_STARTED, threadId, runId }, ...calls, { type: EventType.RUN_FINISHED, threadId, runId }]);
  }
}

/** The values that reach the page's surfaces, in order. */
async function values(...runs) {
  const agent = new Agent(runs.slice());
  agent.use(new A2UIMiddleware());
  const seen = [];
  agent.subscribe({
    onActivitySnapshotEvent({ event }) {
      for (const { updateDataModel } of event.content.a2ui_operations ?? []) {
        if (updateDataModel) seen.push([updateDataModel.surfaceId, updateDataModel.value.city ?? updateDataModel.value]);
      }
    },
  });
  for (let index = 0; index < runs.length; index++) await agent.runAgent({ runId: `run-${index}` });
  return seen;
}

const same = await values([draw("map"), update("map")]);
const other = await values([draw("map"), update("list")]);
const later = await values([draw("map")], [update("map")]);
console.log("the same run:   ", JSON.stringify(same));
console.log("another surface:", JSON.stringify(other));
console.log("the next run:   ", JSON.stringify(later));
assert.deepEqual(same, [["map", "Bonn"]]);
assert.deepEqual(other, [["map", "Bonn"], ["list", "Ulm"]]);
assert.deepEqual(later, [["map", "Bonn"], ["map", "Ulm"]]);
JAVASCRIPT
node check.js
echo "as described"
