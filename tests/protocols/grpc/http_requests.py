"""Requests over HTTP to the server that the gRPC clients call."""

import json
import urllib.request
from typing import Any

from tests.protocols.grpc.client import WAIT
from tests.server.sockets.process import ServerProcess
from tests.sse import events_of

Json = dict[str, Any]


def run_over_sse(server: ServerProcess, body: Json) -> list[Json]:
    url = f"http://127.0.0.1:{server.port}/invocations"
    request = urllib.request.Request(url, json.dumps({"protocolVersion": "1.0", **body}).encode())
    with urllib.request.urlopen(request, timeout=WAIT) as answer:  # noqa: S310 - a loopback address
        return events_of(answer.read())


def get_json(server: ServerProcess, path: str) -> Json:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=WAIT) as answer:
        found: Json = json.load(answer)
        return found


def delete(server: ServerProcess, path: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", method="DELETE")
    with urllib.request.urlopen(request, timeout=WAIT) as answer:  # noqa: S310 - a loopback address
        return int(answer.status)


def answer_approval(server: ServerProcess, thread: str, run: str, *, approved: bool, **payload: object) -> list[Json]:
    (asked,) = get_json(server, f"/threads/{thread}")["waiting"]
    answer = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": approved, **payload}}
    return run_over_sse(server, {"threadId": thread, "runId": run, "messages": [], "resume": [answer]})
