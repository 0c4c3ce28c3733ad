#!/usr/bin/env bash
# @aws-sdk/client-bedrock-agentcore 3.1141.0: an error of an agent whose body is not JSON becomes a SyntaxError without code or class.
#
# The class of an AWS error is in the header `x-amzn-errortype`. The SDK parses the body first, and an SSE frame, as an
# agent's stream has them, or a line of text stops it there. `name`, `instanceof` and `$fault` then say nothing; the status
# and the header are left in `$metadata` and in the hidden `$response`. An empty body is read by the header, and boto3
# 1.44.8 makes the right class of all four.
# Seen: JSON and empty: ValidationException; SSE and text: SyntaxError with status 400; boto3: ValidationException 4 times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @aws-sdk/client-bedrock-agentcore@3.1141.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check boto3==1.44.8 2>/dev/null
cat >boto.py <<'PYTHON'
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

client = boto3.client(
    "bedrock-agentcore",
    region_name="us-east-1",
    endpoint_url=sys.argv[1],
    aws_access_key_id="a",
    aws_secret_access_key="b",
    config=Config(retries={"total_max_attempts": 1}),
)
try:
    client.invoke_agent_runtime(agentRuntimeArn=sys.argv[2], payload=b"{}")
except ClientError as error:
    print(type(error).__name__)
PYTHON
cat >check.js <<'JAVASCRIPT'
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { promisify } from "node:util";
import { BedrockAgentCoreClient, InvokeAgentRuntimeCommand } from "@aws-sdk/client-bedrock-agentcore";

let answer;
const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.writeHead(400, { "content-type": answer.type, "x-amzn-errortype": "ValidationException" });
    response.end(answer.body);
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const endpoint = `http://127.0.0.1:${server.address().port}`;
const agentRuntimeArn = "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/local";
const credentials = { accessKeyId: "a", secretAccessKey: "b" };
const client = new BedrockAgentCoreClient({ region: "us-east-1", endpoint, credentials, maxAttempts: 1 });

async function errorFor(type, body) {
  answer = { type, body };
  const command = new InvokeAgentRuntimeCommand({ agentRuntimeArn, payload: new TextEncoder().encode("{}") });
  const error = await client.send(command).then(assert.fail, (raised) => raised);
  const { stdout } = await promisify(execFile)("venv/bin/python", ["boto.py", endpoint, agentRuntimeArn]);
  const header = error.$response.headers["x-amzn-errortype"];
  return { name: error.name, fault: error.$fault, status: error.$metadata.httpStatusCode, header, boto3: stdout.trim() };
}

const errors = {
  json: await errorFor("application/json", JSON.stringify({ message: "No messages." })),
  empty: await errorFor("text/event-stream", ""),
  sse: await errorFor("text/event-stream", 'data: {"type": "RUN_ERROR", "message": "No messages."}\n\n'),
  text: await errorFor("text/plain", "No messages."),
};
server.close();
console.table(errors);
const same = { status: 400, header: "ValidationException", boto3: "ValidationException" };
const named = { name: "ValidationException", fault: "client", ...same };
const lost = { name: "SyntaxError", fault: undefined, ...same };
assert.deepEqual(errors, { json: named, empty: named, sse: lost, text: lost });
JAVASCRIPT
node --no-warnings check.js
echo "as described"
