#!/usr/bin/env bash
# bedrock-agentcore 1.25.0 over strands-agents 1.62.0: while AgentCore Memory throttles the reading of messages, an agent starts without its thread.
#
# `AgentCoreMemorySessionManager` reads the session, then the agent's state, then the messages. An error in the first leaves
# the agent's constructor. An error in the last is logged, and counts as a thread without messages. So the agent answers as
# to a first message, and question and answer are stored behind the messages that it has not seen. A caller cannot tell:
# nothing is raised, and an empty thread is what a new user has.
# Seen: 1 message; none and no exception while the list of messages is a 429; 3 after it; ClientError while the first list is one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  bedrock-agentcore==1.25.0 strands-agents==1.62.0 boto3==1.44.8 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
import logging
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from botocore.exceptions import ClientError
from strands import Agent

logging.disable(logging.CRITICAL)
events: list[dict] = []
throttled = ""


class MemoryServer(BaseHTTPRequestHandler):
    """CreateEvent and ListEvents of AgentCore Memory. Only the list of messages has no filter."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        filters = body.get("filter", {}).get("eventMetadata", [])
        if self.path.endswith("/events"):
            event = {"eventId": f"{len(events)}#aaaaaaaa", "eventTimestamp": 1, "payload": body["payload"]}
            events.append({**event, "metadata": body.get("metadata", {})})
            self.answer(201, {"event": events[-1]})
        elif throttled == ("session" if filters else "messages"):
            self.answer(429, {"message": "Rate exceeded"})
        else:
            wanted = {entry["left"]["metadataKey"]: entry["right"]["metadataValue"] for entry in filters}
            self.answer(200, {"events": [event for event in events[::-1] if wanted.items() <= event["metadata"].items()]})

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("x-amzn-errortype", "ThrottledException")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments):
        pass


def texts_before_adding(text: str) -> list[str]:
    """Make an agent for the thread, add a message of the user, and return the messages that the agent had before."""
    config = AgentCoreMemoryConfig(memory_id="memory-0123456789", session_id="thread", actor_id="ada")
    sessions = AgentCoreMemorySessionManager(config, region_name="us-east-1")
    agent = Agent(agent_id="agent", session_manager=sessions)
    sessions.append_message({"role": "user", "content": [{"text": text}]}, agent)
    return [message["content"][0]["text"] for message in agent.messages]


server = HTTPServer(("127.0.0.1", 0), MemoryServer)
Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
os.environ.update(AWS_ENDPOINT_URL=url, AWS_REGION="us-east-1", AWS_MAX_ATTEMPTS="1")
os.environ.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
restored = [texts_before_adding("I am Ada.")]
for throttled, text in (("", "Good."), ("messages", "Who am I?"), ("", "Really?")):
    restored.append(texts_before_adding(text))
print(*restored, sep="\n")
assert restored == [[], ["I am Ada."], [], ["I am Ada.", "Good.", "Who am I?"]]
throttled = "session"
try:
    texts_before_adding("Hello?")
    raise SystemExit("a session that cannot be read is no error")
except ClientError as error:
    print("list of sessions:", error.response["Error"]["Code"])
server.shutdown()
PYTHON
echo "as described"
