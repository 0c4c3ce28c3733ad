#!/usr/bin/env bash
# @ag-ui/client 1.0.0 beside ag-ui-protocol 1.0.0: an outcome that is newer than both is a success in JavaScript and an error in Python.
#
# Both packages have the schema of AG-UI 1.0, whose union of outcomes may get members in later versions. The
# client strips an unknown outcome as it strips an unknown property. RUN_FINISHED without an outcome means success, so a
# page reports a run that is, say, paused as done; only console.warn differs. Python's models refuse the whole event.
# Seen: JavaScript: outcome "success", one warning; Python: ValidationError; an unknown property passes in both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/client@1.0.0 rxjs@7.8.1
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ag-ui-protocol==1.0.0 2>/dev/null
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { AbstractAgent } from "@ag-ui/client";
import { of } from "rxjs";

const warnings = [];
console.warn = (...words) => void warnings.push(words.join(" "));

class Agent extends AbstractAgent {
  fields;

  run({ threadId, runId }) {
    return of({ type: "RUN_STARTED", threadId, runId }, { type: "RUN_FINISHED", threadId, runId, ...this.fields });
  }
}

async function outcomeOf(fields) {
  const agent = new Agent();
  agent.fields = fields;
  let seen;
  await agent.runAgent({}, { onRunFinishedEvent: ({ outcome }) => void (seen = outcome) });
  return { outcome: seen, warnings: warnings.splice(0) };
}

const newer = await outcomeOf({ outcome: { type: "paused" } });
const extra = await outcomeOf({ outcome: { type: "success" }, paused: true });
console.log(newer, extra);
assert.equal(newer.outcome, "success");
assert.equal(newer.warnings.length, 1);
assert.match(newer.warnings[0], /'\/outcome' on RUN_FINISHED/);
assert.equal(extra.outcome, "success");
JAVASCRIPT
node check.js
venv/bin/python - <<'PYTHON'
from ag_ui.core import Event
from pydantic import TypeAdapter, ValidationError

events = TypeAdapter(Event)
finished = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}
extra = events.validate_python({**finished, "outcome": {"type": "success"}, "paused": True})
assert extra.outcome.type == "success"
try:
    events.validate_python({**finished, "outcome": {"type": "paused"}})
except ValidationError as error:
    print("Python:", error.errors()[0]["msg"])
else:
    raise AssertionError("the newer outcome is valid in Python")
PYTHON
echo "as described"
