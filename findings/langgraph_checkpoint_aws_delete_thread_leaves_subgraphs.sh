#!/usr/bin/env bash
# langgraph-checkpoint-aws 1.2.6: `delete_thread` of AgentCore's saver leaves the checkpoints of subgraphs, with the user's messages in them.
#
# LangGraph names the checkpoints of a subgraph by the thread and a namespace. `AgentCoreMemorySaver` keeps each namespace in
# a session of its own, whose id is a hash of both. `delete_thread` deletes the session that is named like the thread, and
# no other. It raises nothing, and the ids of the remaining sessions do not show whose they are. LangGraph's own
# `InMemorySaver` deletes the checkpoints of all namespaces. The plain `delete_thread(thread_id)` of LangGraph's interface
# is refused, because the actor is "" and AWS wants a character at least.
# Seen: 2 sessions before, 1 after, and "My number is 555." is in it; ParamValidationError without an actor; InMemorySaver: nothing left.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  langgraph-checkpoint-aws==1.2.6 langgraph==1.2.24 langgraph-checkpoint==4.3.2 boto3==1.44.8 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import unquote

from botocore.exceptions import ParamValidationError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_checkpoint_aws import AgentCoreMemorySaver

sessions: dict[str, dict[str, dict]] = {}


class MemoryServer(BaseHTTPRequestHandler):
    """CreateEvent, ListEvents and DeleteEvent of AgentCore Memory."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/events"):
            events = sessions.setdefault(body["sessionId"], {})
            event = {"eventId": f"{len(events)}#aaaaaaaa", "eventTimestamp": 1, "payload": body["payload"]}
            events[event["eventId"]] = event
            self.answer({"event": event})
        else:
            session = unquote(self.path).partition("/sessions/")[2]
            self.answer({"events": list(sessions.get(session, {}).values())[::-1]})

    def do_DELETE(self):
        session, _, event = unquote(self.path).partition("/sessions/")[2].partition("/events/")
        del sessions[session][event]
        self.answer({"eventId": event})

    def answer(self, body):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments):
        pass


def run(saver) -> None:
    child = StateGraph(MessagesState).add_node("say", lambda state: {"messages": [("ai", "Hello.")]}).add_edge(START, "say")
    graph = StateGraph(MessagesState).add_node("child", child.compile()).add_edge(START, "child")
    config = {"configurable": {"thread_id": "thread", "actor_id": "ada"}}
    graph.compile(checkpointer=saver).invoke({"messages": [("user", "My number is 555.")]}, config)


server = HTTPServer(("127.0.0.1", 0), MemoryServer)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
keys = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
saver = AgentCoreMemorySaver("memory-0123456789", endpoint_url=url, **keys)
run(saver)
before = {session: len(events) for session, events in sessions.items()}
try:
    saver.delete_thread("thread")
    raise SystemExit("the plain delete_thread works")
except ParamValidationError as error:
    print(str(error).splitlines()[-1])
saver.delete_thread("thread", "ada")
server.shutdown()
after = {session: len(events) for session, events in sessions.items() if events}
print("before:", before, "after:", after, sep="\n")
assert len(before) == 2 and "thread" in before
assert after == {session: count for session, count in before.items() if session != "thread"}
items = [item for events in sessions.values() for event in events.values() for item in event["payload"]]
left = [str(saver.serializer.deserialize_event(item["blob"])) for item in items]
assert any("My number is 555." in event for event in left)

in_memory = InMemorySaver()
run(in_memory)
assert any(in_memory.storage["thread"])
in_memory.delete_thread("thread")
print("InMemorySaver:", dict(in_memory.storage), dict(in_memory.blobs))
assert not in_memory.storage and not in_memory.blobs
PYTHON
echo "as described"
