"""Attacks of ``bench.two_callers`` that read a large thread again and again.

Each makes its thread first, which takes up to ``PREPARATION_SECONDS``, and then reads it until its process is ended.
"""

import http.client
import json
import threading
from contextlib import suppress

PREPARATION_SECONDS = 9.0
THREAD = "first"
QUESTION = {"id": "q", "role": "user", "content": "hi"}
LONG = [{"id": f"m{n}", "role": "user", "content": 1_000 * "x"} for n in range(4_000)]


def feedback(port: int) -> None:
    """A thread of 2,000 messages with 4,000 characters of feedback on each, asked for on 20 connections."""
    begin_run(port, *({"id": f"m{n}", "role": "assistant", "content": "x"} for n in range(2_000)))
    for n in range(2_000):
        body = {"sentiment": "negative", "notes": "x" * 4_000}
        exchange(port, "POST", f"/threads/{THREAD}/messages/m{n}/feedback", body)
    read_at_once(port, f"/threads/{THREAD}?messages=false", 20)


def goal_lists(port: int) -> None:
    """A thread with 16 goals of each of 500 runs, asked for on 20 connections."""
    goals = [{"type": f"g{n}", "schema": {}} for n in range(16)]
    for n in range(500):
        begin_run(port, run_id=f"r{n}", forwardedProps={"goals": goals})
    read_at_once(port, f"/threads/{THREAD}?messages=false", 20)


def roboto_reads(port: int) -> None:
    """A session of 4 MB in 4,000 messages, asked for on 50 connections."""
    begin_run(port, *LONG)
    read_at_once(port, f"/v1/ai/threads/{THREAD}", 50)


def roboto_polls(port: int) -> None:
    """Polls of a session of 4 MB on 100 connections, each of which the server holds back."""
    begin_run(port, *LONG)
    path, query = f"/v1/ai/threads/{THREAD}/delta", ""
    for _ in range(2):  # the second answer has no change, so a third request with its token is a poll
        token = json.loads(exchange(port, "GET", path + query))["data"]["continuation_token"]
        query = f"?next_token={token}"
    read_at_once(port, path + query, 100)


READS = (feedback, goal_lists, roboto_reads, roboto_polls)


def begin_run(port: int, *messages: dict[str, str], run_id: str = "r", **fields: object) -> None:
    """Send messages and a question to the thread, and wait for the answer."""
    body = {"threadId": THREAD, "runId": run_id, "messages": [*messages, QUESTION], **fields}
    exchange(port, "POST", "/invocations", body)


def exchange(port: int, method: str, path: str, body: object = None) -> bytes:
    """Send a request on a new connection, and read its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        return connection.getresponse().read()
    finally:
        connection.close()


def read_at_once(port: int, path: str, times: int) -> None:
    """Read a resource again and again, on several connections at once."""

    def repeat() -> None:
        while True:
            with suppress(OSError, http.client.HTTPException):
                exchange(port, "GET", path)

    workers = [threading.Thread(target=repeat, daemon=True) for _ in range(times)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
