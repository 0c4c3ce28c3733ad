#!/usr/bin/env bash
# langgraph-checkpoint-aws 1.2.6: `AgentCoreMemoryStore.delete` sends no request, and a second `put` adds to the first.
#
# It is a store of LangGraph, where a key names one item: `put` replaces it, `get` returns it, `delete` removes it. This one
# sends each `put` as a new event, without the key. `delete` and `put(…, None)` return as after a success, and all that says
# otherwise is a warning in the log. A user who asks to be forgotten is not, and "moved to Ulm" is kept beside "lives in
# Bonn". `get` takes ids of AWS's memory records, so a key of one's own is a ParamValidationError.
# Seen: 2 puts under one key: 2 events; `delete`: 0 requests, None; `get`: ParamValidationError; InMemoryStore: 1 item, then 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  langgraph-checkpoint-aws==1.2.6 langgraph==1.2.24 langgraph-checkpoint==4.3.2 boto3==1.44.8 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
import logging
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from botocore.exceptions import ParamValidationError
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from langgraph_checkpoint_aws import AgentCoreMemoryStore

logging.basicConfig(format="log: %(message)s")
requests: list[tuple[str, dict]] = []


class MemoryServer(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        requests.append((self.path, body))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(json.dumps({"event": {"eventId": f"{len(requests)}#a", "eventTimestamp": 1}}).encode())

    def log_message(self, *arguments):
        pass


server = HTTPServer(("127.0.0.1", 0), MemoryServer)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
keys = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
agentcore = AgentCoreMemoryStore(memory_id="memory-0123456789", endpoint_url=url, **keys)
in_memory = InMemoryStore()
namespace = ("ada", "session")
for store in (agentcore, in_memory):
    store.put(namespace, "home", {"message": HumanMessage("I live in Bonn.")})
    store.put(namespace, "home", {"message": HumanMessage("I moved to Ulm.")})

texts = [body["payload"][0]["conversational"]["content"]["text"] for _, body in requests]
print("events after two puts:", texts)
assert texts == ["I live in Bonn.", "I moved to Ulm."]
assert not any("home" in f"{path} {body}" for path, body in requests)
assert in_memory.get(namespace, "home").value["message"].content == "I moved to Ulm."
assert len(in_memory.search(namespace)) == 1

requests.clear()
answers = [store.delete(namespace, "home") for store in (agentcore, in_memory)]
print("delete returns", answers, "after", len(requests), "requests")
assert answers == [None, None] and not requests
assert in_memory.search(namespace) == []

try:
    agentcore.get(namespace, "home")
    raise SystemExit("a key of one's own is found")
except ParamValidationError as error:
    print("get:", str(error).splitlines()[-1])
server.shutdown()
PYTHON
echo "as described"
