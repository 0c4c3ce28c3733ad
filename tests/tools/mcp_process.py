"""An MCP server as a process, ``python tests/tools/mcp_process.py BEHAVIOUR…``, that has one tool and odd habits.

A habit that begins with a brace is the answer of the first call, with ``ID`` for its id.
"""

import json
import os
import signal
import subprocess
import sys
import time

TOOL = {"name": "echo", "description": "Says: carried out", "inputSchema": {"type": "object"}}


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def result_of(method: str, params: dict[str, object]) -> dict[str, object]:
    match method:
        case "initialize":
            about = {"name": "process", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
    arguments = params.get("arguments")
    size = arguments.get("size", 0) if isinstance(arguments, dict) else 0
    return {"content": [{"type": "text", "text": "x" * int(str(size)) or "carried out"}]}


def respond(message: dict[str, object], habits: set[str]) -> bytes:
    method, params = str(message["method"]), message.get("params")
    whole = next((habit for habit in habits if habit.startswith("{")), None)
    if whole is not None and method == "tools/call":
        habits.remove(whole)
        return whole.replace("ID", str(message["id"])).encode()
    if method == "server/discover":
        answer: dict[str, object] = {"error": {"code": -32601, "message": "unknown"}}
    else:
        answer = {"result": result_of(method, params if isinstance(params, dict) else {})}
    head: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
    if "version second" in habits:
        head = dict(reversed(head.items()))
    text = json.dumps({**answer, **head} if "id last" in habits else {**head, **answer}).encode()
    for habit, words in {"broken": b"\\x", "half": b"cut \\ud83d", "latin": b"caf\xe9"}.items():
        if habit in habits and (habit != "broken" or method == "tools/call"):
            text = text.replace(b"carried out", words)
    return text


def announce(process: int) -> None:
    sys.stderr.write(f"begin {process}\n")
    sys.stderr.flush()


def begin(habits: set[str]) -> None:
    announce(os.getpid())
    if "child" in habits:
        announce(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
    if "stubborn" in habits:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def main(habits: set[str]) -> None:
    begin(habits)
    is_locked = False
    for line in sys.stdin:
        message = json.loads(line)
        is_newest = message["method"] == "server/discover"
        if is_newest and "exits" in habits:
            sys.exit(1)
        is_locked = is_locked or (is_newest and "silent" in habits)  # nothing more is answered
        if is_locked or "id" not in message:
            continue
        if "binary" in habits:
            write(b"\xff\xfe log \x80")
        write(respond(message, habits))
    if "stubborn" in habits:
        time.sleep(600)


if __name__ == "__main__":
    main(set(sys.argv[1:]))
