#!/usr/bin/env bash
# openinference-instrumentation-bedrock 0.1.61 beside boto3 1.44.8: after a streamed tool call without arguments a span has no answer and no tokens.
#
# A content block of `converse_stream` may begin with a call and end without a piece of its input, and reasoning may be a
# signature alone. The instrumentation copies what came. Then it makes the attributes of the whole answer at once, with
# `input` and `text` as if they were always there. The KeyError is a line of the log. The span ends without all of it: its
# status, the finish reason, the tokens, and the text and calls that came beside. The stream itself is passed on complete.
# Seen: no input, and signature alone: 0 attributes of the answer, status UNSET; input "" and reasoning with text: 15 tokens, OK.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openinference-instrumentation-bedrock==0.1.61 \
  openinference-instrumentation==0.1.72 opentelemetry-sdk==1.45.1 boto3==1.44.8 2>/dev/null
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
import logging
import struct
import threading
from binascii import crc32
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
from openinference.instrumentation.bedrock import BedrockInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

logging.disable(logging.CRITICAL)
TEXT = [("contentBlockDelta", 0, {"delta": {"text": "Let me see."}}), ("contentBlockStop", 0, {})]
CALL = ("contentBlockStart", 1, {"start": {"toolUse": {"toolUseId": "call", "name": "clock"}}})
NO_INPUT = ("contentBlockDelta", 1, {"delta": {"toolUse": {"input": ""}}})
THOUGHT = ("contentBlockDelta", 1, {"delta": {"reasoningContent": {"text": "Hm."}}})
SIGNATURE = ("contentBlockDelta", 1, {"delta": {"reasoningContent": {"signature": "c2lnbmVk"}}})
STOP = ("contentBlockStop", 1, {})


def framed(kind: str, body: dict) -> bytes:
    """Return one message of the event stream."""
    headers = b""
    for name, value in {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}.items():
        headers += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
    payload = json.dumps(body).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return message + struct.pack("!I", crc32(message))


class Bedrock(BaseHTTPRequestHandler):
    blocks: list[tuple[str, int, dict]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        events = [
            ("messageStart", {"role": "assistant"}),
            *((kind, {"contentBlockIndex": index, **body}) for kind, index, body in self.blocks),
            ("messageStop", {"stopReason": "end_turn"}),
            ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
        ]
        answer = b"".join(framed(kind, body) for kind, body in events)
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.amazon.eventstream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments) -> None:
        pass


exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
BedrockInstrumentor().instrument(tracer_provider=provider)
server = ThreadingHTTPServer(("127.0.0.1", 0), Bedrock)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = boto3.client(
    "bedrock-runtime",
    region_name="us-east-1",
    endpoint_url=f"http://127.0.0.1:{server.server_port}",
    aws_access_key_id="id",
    aws_secret_access_key="none",
)


def span_of(*blocks: tuple[str, int, dict]) -> tuple[str, object, int, bool]:
    """Return the span's status, its tokens, how many attributes it has of the answer, and if the client got the whole stream."""
    exporter.clear()
    Bedrock.blocks = [*TEXT, *blocks]
    question = {"role": "user", "content": [{"text": "What time is it?"}]}
    events = list(client.converse_stream(modelId="a.model", messages=[question])["stream"])
    (span,) = exporter.get_finished_spans()
    of_answer = [name for name in span.attributes if name.startswith(("llm.output", "output.", "llm.token", "llm.finish"))]
    tokens = span.attributes.get("llm.token_count.total")
    return span.status.status_code.name, tokens, len(of_answer), len(events) == len(Bedrock.blocks) + 3


seen = {
    "text alone": span_of(),
    "call with the input ''": span_of(CALL, NO_INPUT, STOP),
    "call without input": span_of(CALL, STOP),
    "reasoning with text": span_of(THOUGHT, SIGNATURE, STOP),
    "signature alone": span_of(SIGNATURE, STOP),
}
server.shutdown()
for name, span in seen.items():
    print(f"{name}: {span}")
for name in ("text alone", "call with the input ''", "reasoning with text"):
    status, tokens, attributes, is_whole = seen[name]
    assert (status, tokens, attributes > 5, is_whole) == ("OK", 15, True, True)
for name in ("call without input", "signature alone"):
    assert seen[name] == ("UNSET", None, 0, True)
PYTHON
echo "as described"
