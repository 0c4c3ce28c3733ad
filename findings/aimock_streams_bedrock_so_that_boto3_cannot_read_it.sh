#!/usr/bin/env bash
# @copilotkit/aimock 1.43.0 beside boto3 1.44.8: the mock's Bedrock answers can be read whole, and not as streams.
#
# aimock offers both of Bedrock's streams. Before a text it sends `contentBlockStart` with `"start": {}`. In AWS's model
# `start` is a union without a member for text, and botocore raises ResponseParserError if a union is empty. The chunks of
# the older `InvokeModelWithResponseStream` arrive empty, because their payload is not in the member `bytes`.
# A test of an agent on Bedrock therefore fails in the parser, or gets an empty answer without an error.
# Seen: converse "Hello there."; converse_stream fails at its second event; all chunks of the older stream are {}.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @copilotkit/aimock@1.43.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check boto3==1.44.8 2>/dev/null
cat >check.py <<'PYTHON'
import json
import sys

import boto3
from botocore.parsers import ResponseParserError

client = boto3.client(
    "bedrock-runtime",
    region_name="us-east-1",
    endpoint_url=sys.argv[1],
    aws_access_key_id="a",
    aws_secret_access_key="b",
)
messages = [{"role": "user", "content": [{"text": "Hello"}]}]
whole = client.converse(modelId="test", messages=messages)["output"]["message"]["content"]

events, error = [], ""
try:
    for event in client.converse_stream(modelId="test", messages=messages)["stream"]:
        events.append(event)
except ResponseParserError as raised:
    error = str(raised)

body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
older = client.invoke_model_with_response_stream(modelId="anthropic.claude-test", body=json.dumps(body))["body"]
chunks = [event["chunk"] for event in older]

print("converse:       ", whole)
print("converse_stream:", events, error)
print("older stream:   ", chunks)
assert whole == [{"text": "Hello there."}]
assert events == [{"messageStart": {"role": "assistant"}}]
assert "ContentBlockStart must have one and only one member set" in error
assert chunks
assert all(chunk == {} for chunk in chunks)
PYTHON
cat >check.js <<'JAVASCRIPT'
import { spawn } from "node:child_process";
import { once } from "node:events";
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0 });
mock.onMessage(/Hello/, { content: "Hello there." });
await mock.start();
const [code] = await once(spawn("venv/bin/python", ["check.py", mock.url], { stdio: "inherit" }), "exit");
await mock.stop();
process.exit(code);
JAVASCRIPT
node check.js
echo "as described"
