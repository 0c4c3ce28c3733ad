#!/usr/bin/env bash
# @ag-ui/encoder 1.0.0: a client that takes anything gets protobuf, and one that says nothing gets text.
#
# curl, `fetch` and most HTTP clients send `Accept: */*`. The encoder reads it as a wish for AG-UI's binary frames, and
# "text/event-stream, */*;q=0.1" too, since it asks only whether the binary type is acceptable at all. By RFC 9110 a
# request without the header means the same as `*/*`. The Python encoder of ag-ui-protocol 1.0.0 sends text to all four.
# Seen: `*/*` and the one with q: application/vnd.ag-ui.event+proto; no header and text/event-stream: text/event-stream.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/encoder@1.0.0 @ag-ui/core@1.0.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ag-ui-protocol==1.0.0 2>/dev/null
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { EventType } from "@ag-ui/core";
import { EventEncoder } from "@ag-ui/encoder";

const event = { type: EventType.RUN_STARTED, threadId: "thread", runId: "run" };
const server = createServer((request, response) => {
  const encoder = new EventEncoder({ accept: request.headers.accept });
  response.setHeader("content-type", encoder.getContentType());
  response.end(encoder.encodeBinary(event));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

async function answerTo(accept) {
  const headers = accept === undefined ? {} : { accept };
  const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers });
  const start = new Uint8Array(await response.arrayBuffer()).slice(0, 5);
  return { type: response.headers.get("content-type"), isText: new TextDecoder().decode(start) === "data:" };
}

const answers = {
  "nothing said to fetch": await answerTo(undefined),
  "*/*": await answerTo("*/*"),
  "text/event-stream, */*;q=0.1": await answerTo("text/event-stream, */*;q=0.1"),
  "text/event-stream": await answerTo("text/event-stream"),
};
server.close();
const withoutHeader = new EventEncoder({}).getContentType();
console.log(answers, "no header:", withoutHeader);
const binary = { type: "application/vnd.ag-ui.event+proto", isText: false };
const text = { type: "text/event-stream", isText: true };
assert.deepEqual(Object.values(answers), [binary, binary, binary, text]);
assert.equal(withoutHeader, "text/event-stream");
JAVASCRIPT
node check.js
venv/bin/python - <<'PYTHON'
from ag_ui.encoder import EventEncoder

accepted = [None, "*/*", "text/event-stream, */*;q=0.1", "text/event-stream"]
assert {EventEncoder(accept=accept).get_content_type() for accept in accepted} == {"text/event-stream"}
PYTHON
echo "as described"
