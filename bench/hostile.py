"""Latency of ``GET /ping`` while a client sends bodies that are made to block the event loop.

    PYTHONPATH=app python -m bench.hostile              every body
    PYTHONPATH=app python -m bench.hostile state calls  the bodies whose names contain one of these words

Starts a server of its own, with the assistant on the offline model. Each body is below ``AGUI_MAX_BODY_BYTES`` and is
sent three times. Pings are sent by a process of their own, one every 5 ms on a connection that stays open. The aim is a
longest ping below 50 ms for every body.
"""

import http.client
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from bench.ping import server

MAX_BYTES = 9_900_000
INTERVAL = 0.005
REPEATS = 3
SECONDS = 120.0

Json = dict[str, object]

MANY: Json = {"items": [{"path": "/a"}] * 200_000}
"""An object with many items, as a patch has."""


def run_input(messages: list[object] | None = None, **fields: object) -> Json:
    """A run input with ids of its own."""
    request_messages = [{"id": "m", "role": "user", "content": "hi"}] if messages is None else messages
    return {
        "threadId": f"t{time.perf_counter_ns()}",
        "runId": "r",
        "protocolVersion": "1.0",
        "messages": request_messages,
        **fields,
    }


def user(content: object) -> list[object]:
    """One message of a user."""
    return [{"id": "m", "role": "user", "content": content}]


def assistant(calls: list[object]) -> list[object]:
    """One message of an assistant with tool calls."""
    return [{"id": "m", "role": "assistant", "content": "x", "toolCalls": calls}]


def call(number: int) -> Json:
    """A tool call."""
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def result(number: int) -> Json:
    """The result of a tool call that nobody made."""
    return {"id": f"r{number}", "role": "tool", "toolCallId": f"c{number}", "content": "x"}


def texts(count: int, size: int) -> list[object]:
    """Messages of a user."""
    return [{"id": f"m{number}", "role": "user", "content": f"{number} " + "x" * size} for number in range(count)]


def goal(schema: Json) -> Json:
    """A run that declares one goal, and whose model calls its tool a hundred times."""
    calls = "\n".join(['call achieve_g {"a": ' + json.dumps([{"b": 1}] * 500) + "}"] * 100)
    return run_input(user(calls), forwardedProps={"goals": [{"type": "g", "schema": schema}]})


def feedback(categories: list[object]) -> Json:
    """A command that carries a list."""
    command = {"type": "threads.feedback", "threadId": "t", "messageId": "m", "sentiment": "positive"}
    return {"command": {**command, "categories": categories}}


def make_nested(depth: int) -> object:
    """Return a document of lists inside each other."""
    inner: object = 1
    for _ in range(depth):
        inner = [inner]
    return inner


def schema_of(depth: int) -> Json:
    """A schema in which each level has the one below twice."""
    if depth == 0:
        return {"type": "array"}
    return {"anyOf": [{"$ref": "#"}, schema_of(depth - 1)]}


def bodies() -> Iterator[tuple[str, object]]:
    """Names and documents."""
    yield "39,000 wrong parts", run_input(user([1] * 39_000))
    yield "4,000 wrong parts", run_input(user([{"type": "text"}] * 4_000))
    yield "33,000 empty calls", run_input(assistant([{}] * 33_000))
    yield "4,000 empty calls", run_input(assistant([{}] * 4_000))
    yield "4,000 calls", run_input([*assistant(list(map(call, range(4_000)))), *user("hi")])
    yield "10,000 calls", run_input(assistant(list(map(call, range(2_500)))) * 4)
    yield "10,000 wrong messages", run_input([{"id": 1, "role": "user", "content": 1}] * 10_000)
    yield "10,000 messages", run_input(texts(10_000, 0))
    yield "2,000 messages of 4 KB", run_input(texts(2_000, 4_000))
    yield (
        "1,000 tools",
        run_input(tools=[{"name": f"t{n}", "description": "d", "parameters": {}} for n in range(1_000)]),
    )
    yield "1,000 wrong tools", run_input(tools=[{}] * 1_000)
    yield "a tool with large parameters", run_input(tools=[{"name": "t", "description": "", "parameters": MANY}])
    yield "1,000 context items", run_input(context=[{"description": "d" * 4_000, "value": "v" * 4_000}] * 1_000)
    yield "1,000 wrong context items", run_input(context=[{}] * 1_000)
    yield "1,000 answers", run_input(resume=[{"interruptId": f"i{n}", "status": "resolved"} for n in range(1_000)])
    yield "1,000 wrong answers", run_input(resume=[{"status": 1}] * 1_000)
    yield "an activity", run_input([{"id": "a", "role": "activity", "activityType": "x", "content": MANY}])
    yield "a command with many fields", {"command": {"type": "ping", **dict.fromkeys(map(str, range(90_000)), 1)}}
    yield "many categories", feedback(["helpful"] * 400_000)
    yield "wrong categories", feedback([1] * 1_400_000)
    yield "a string", run_input(user("x" * MAX_BYTES))
    yield "a string of 4-byte characters", run_input(user("x" * (MAX_BYTES - 10) + "\U0001f600"))
    yield "newlines", run_input(user("\n" * (MAX_BYTES // 2)))
    yield "newlines behind a call", run_input(user("call f " + "\n" * (MAX_BYTES // 2) + "x"))
    yield "words", run_input(user("think " + "a " * (MAX_BYTES // 2)))
    yield "calls by line", run_input(user("call f {}\n" * 900))
    yield "state of numbers", run_input(state=[1] * 1_400_000)
    yield "too many strings in a state", run_input(state=[""] * 1_400_000)
    yield "state of strings", run_input(state=[f"{number:06d}" for number in range(490_000)])
    yield "state of lists", run_input(state=[[]] * 240_000)
    yield "state of objects", run_input(state=[{"a": 1}] * 240_000)
    yield "state with 100,000 keys", run_input(state={f"key{number}": number for number in range(100_000)})
    yield "state that is deep", run_input(state=make_nested(190))
    yield "props of lists", run_input(forwardedProps=[[]] * 240_000)
    yield "long ids", run_input([{"id": "i" * 10_000, "role": "user", "content": "x"}] * 900)
    yield "an id of megabytes", {**run_input(), "threadId": "t" * MAX_BYTES}
    yield "extra fields", {**run_input(), **{f"key{number}": number for number in range(90_000)}}
    yield "goals", goal({"type": "object", "properties": {"a": {"items": {"anyOf": [{"required": ["c"]}] * 100}}}})
    yield (
        "16 patterns",
        goal({"type": "object", "properties": {f"p{n}": {"pattern": "(a{90}){90}"} for n in range(16)}}),
    )
    yield "a deep schema", goal({"type": "object", "properties": {"a": schema_of(60)}})
    yield "no JSON", "x" * MAX_BYTES


def ping_until_told(port: int, control: Connection) -> None:
    """Send pings, and give the longest one in milliseconds whenever it is asked for."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    longest = 0.0
    while True:
        begun = time.perf_counter()
        connection.request("GET", "/ping")
        connection.getresponse().read()
        longest = max(longest, (time.perf_counter() - begun) * 1000)
        if control.poll():
            control.recv()
            control.send(longest)
            longest = 0.0
        time.sleep(INTERVAL)


def post(port: int, document: object) -> tuple[int, float]:
    """Send a body and read the whole answer. Returns the status and the seconds."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("POST", "/invocations", body)
    response = connection.getresponse()
    while response.read(1 << 16):
        pass
    connection.close()
    return response.status, time.perf_counter() - begun


def main() -> None:
    """Measure and print one line for each body."""
    names = sys.argv[1:]
    ours, theirs = multiprocessing.Pipe()
    with server("assistant") as port:
        pinger = multiprocessing.Process(target=ping_until_told, args=(port, theirs), daemon=True)
        pinger.start()
        try:
            for name, document in bodies():
                if not names or any(word in name for word in names):
                    measure(port, name, document, ours)
            if not names or "history" in names:
                same_thread(port, ours)
        finally:
            pinger.kill()
            pinger.join()


def same_thread(port: int, control: Connection) -> None:
    """Send one conversation again and again under new message ids, each time one message longer."""
    control.send(None)
    control.recv()
    thread, seconds, status = f"t{time.perf_counter_ns()}", 0.0, 0
    for number in range(REPEATS):
        messages: list[object] = [
            {"id": f"{number}-{n}", "role": "user", "content": f"{n}"} for n in range(5_000 + number)
        ]
        status, seconds = post(port, {**run_input(messages), "threadId": thread, "runId": f"r{number}"})
    control.send(None)
    sys.stdout.write(
        f"{'history under new ids':32} status {status}, {seconds:6.2f} s, longest ping {control.recv():6.1f} ms\n"
    )


def measure(port: int, name: str, document: object, control: Connection) -> None:
    """Send one body three times, and print the longest ping meanwhile."""
    control.send(None)
    control.recv()
    status, seconds = 0, 0.0
    for number in range(REPEATS):
        sent = document
        if isinstance(document, dict) and "threadId" in document:
            sent = {**document, "threadId": f"{document['threadId']}{number}"}
        status, seconds = post(port, sent)
    control.send(None)
    sys.stdout.write(f"{name:32} status {status}, {seconds:6.2f} s, longest ping {control.recv():6.1f} ms\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
