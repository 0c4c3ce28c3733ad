#!/usr/bin/env bash
# @ag-ui/client 1.0.0: after `compactEvents`, a run that failed within a message is a stream that the client itself refuses.
#
# `compactEvents` is for servers that keep a thread's events and send them again to a page that comes back. It holds a
# message or a call back until its end, and adds what never ended at the end of the list. RUN_ERROR may come within a
# message, and does not end it. So the half message comes behind the last run, where the client allows no event but a new
# run. The replay fails, also if the user has asked again and got an answer since, and the half answer is not shown.
# Seen: as recorded no error, "The answ" and "The answer."; compacted the half message last, "already finished", "The answer.".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/client@1.0.0 rxjs@7.8.1
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { AbstractAgent, EventType, compactEvents } from "@ag-ui/client";
import { asyncScheduler, scheduled } from "rxjs";

console.error = () => {};

class RecordedAgent extends AbstractAgent {
  constructor(events) {
    super({ threadId: "thread" });
    this.events = events;
  }

  run() {
    return scheduled(this.events, asyncScheduler);
  }
}

async function replay(events) {
  const agent = new RecordedAgent(events);
  let error = null;
  await agent.runAgent({ runId: "first" }).catch((raised) => void (error = raised));
  return { error: error && `${error.name}: ${error.message}`, texts: agent.messages.map(({ content }) => content) };
}

const started = (runId) => ({ type: EventType.RUN_STARTED, threadId: "thread", runId });
const start = (messageId) => ({ type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" });
const content = (messageId, delta) => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta });
const recorded = [
  started("first"),
  start("1"),
  content("1", "The "),
  content("1", "answ"),
  { type: EventType.RUN_ERROR, message: "The model is not available." },
  started("second"),
  start("2"),
  content("2", "The "),
  content("2", "answer."),
  { type: EventType.TEXT_MESSAGE_END, messageId: "2" },
  { type: EventType.RUN_FINISHED, threadId: "thread", runId: "second" },
];
const compacted = compactEvents(recorded);
const before = await replay(recorded);
const after = await replay(compacted);
console.log(compacted.map(({ type }) => type));
console.log({ before, after });
assert.deepEqual(before, { error: null, texts: ["The answ", "The answer."] });
assert.equal(compacted[1].type, EventType.RUN_ERROR);
assert.deepEqual(
  compacted.slice(-2).map(({ messageId }) => messageId),
  ["1", "1"],
);
assert.match(after.error, /Cannot send event type 'TEXT_MESSAGE_START': The run has already finished/);
JAVASCRIPT
node check.js
echo "as described"
