"""An MCP server as a process, ``python tests/tools/mcp_process.py``, of before 2026-07-28 and without the SDK.

Its tool ``ask`` asks within the call, ``wait`` never answers, and ``die`` ends the process.
"""

import json
import os
import sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "ask", "wait", "die")]
ABOUT = {"capabilities": {"tools": {}}, "serverInfo": {"name": "process", "version": "1"}}
FIELDS = {"size": {"type": "integer"}, "approved": {"type": "boolean"}}
QUESTION = {"mode": "form", "message": "Which size?", "requestedSchema": {"type": "object", "properties": FIELDS}}


def write(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(id_: object, words: str) -> None:
    write(id=id_, result={"content": [{"type": "text", "text": words}]})


def call(id_: object, name: str) -> None:
    match name:
        case "ask":
            write(id=f"ask-{id_}", method="elicitation/create", params=QUESTION)
        case "echo":
            say(id_, "carried out")
        case "die":
            os._exit(3)


def main() -> None:
    sys.stdout.write("A banner, which is no message.\n")
    for line in sys.stdin:
        message = json.loads(line)
        id_ = message.get("id")
        match message.get("method"):
            case "initialize":
                write(id=id_, result={"protocolVersion": "2025-11-25", **ABOUT})
            case "tools/list":
                write(id=id_, result={"tools": TOOLS})
            case "tools/call":
                call(id_, message["params"]["name"])
            case None:
                answer = message["result"]
                size = (answer.get("content") or {}).get("size")
                say(int(id_.removeprefix("ask-")), str(size) if answer["action"] == "accept" else answer["action"])
            case _ if id_ is not None:
                write(id=id_, error={"code": -32601, "message": "unknown"})


if __name__ == "__main__":
    main()
