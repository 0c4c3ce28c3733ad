#!/usr/bin/env bash
# @ag-ui/client 1.0.0 beside sse-starlette 3.7.0: a valid AG-UI stream in sse-starlette's default framing is a JSON error.
#
# The HTML standard lets an event stream end its lines with CRLF, LF or CR, and sse-starlette sends CRLF. The client looks
# for LF LF alone. CRLF CRLF has none, so it waits for the end of the stream, joins all `data` lines to one text, and fails
# at the second event. Nothing appears meanwhile, and the error speaks of JSON. `sep="\n"` in the server helps.
# Seen: CRLF: no event, "Unexpected non-whitespace character after JSON"; LF: the whole run, with its text.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @ag-ui/client@1.0.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check ag-ui-protocol==1.0.0 sse-starlette==3.7.0 starlette==1.10.0 uvicorn==0.54.0 2>/dev/null
cat >server.py <<'PYTHON'
import socket

import uvicorn
from ag_ui.core import RunFinishedEvent, RunStartedEvent, TextMessageChunkEvent
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route


async def run(request: Request) -> EventSourceResponse:
    async def events():
        for event in (
            RunStartedEvent(thread_id="thread", run_id="run"),
            TextMessageChunkEvent(message_id="1", delta="Hello."),
            RunFinishedEvent(thread_id="thread", run_id="run"),
        ):
            yield {"data": event.model_dump_json(by_alias=True, exclude_none=True)}

    return EventSourceResponse(events(), **({"sep": "\n"} if request.url.path == "/lf" else {}))


listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/lf", run, methods=["POST"]), Route("/default", run, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
PYTHON
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";

console.error = () => {};

async function received(path) {
  const agent = new HttpAgent({ url: `http://127.0.0.1:${process.argv[2]}/${path}` });
  const events = [];
  let error = null;
  await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event.type) }).catch((raised) => void (error = raised));
  return { events, error: error && `${error.name}: ${error.message}`, text: agent.messages.map(({ content }) => content) };
}

const byDefault = await received("default");
const withLf = await received("lf");
console.log("default:", byDefault);
console.log("LF:     ", withLf);
assert.deepEqual([byDefault.events, byDefault.text], [[], []]);
assert.match(byDefault.error, /^SyntaxError: Unexpected non-whitespace character after JSON/);
assert.equal(withLf.error, null);
assert.deepEqual(withLf.text, ["Hello."]);
JAVASCRIPT
venv/bin/python server.py >port &
server=$!
until [ -s port ]; do sleep 0.1; done
node check.js "$(cat port)"
echo "as described"
