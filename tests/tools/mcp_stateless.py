"""An MCP server, ``python -m tests.tools.mcp_stateless``: its tool promises one kind of result, and gives another."""

import json
import sys

PATTERN = "^(a+)+$"
"""A backtracking engine is not done with ``GIVEN`` before the tests are."""
GIVEN = {"a": "a" * 60 + "!"}


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            about = {"name": "unkept", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            promised = {"type": "object", "properties": {"a": {"type": "string", "pattern": PATTERN}}}
            tool = {"name": "letters", "inputSchema": {"type": "object"}, "outputSchema": promised}
            return {"tools": [tool]}
        case "tools/call":
            return {"content": [], "structuredContent": GIVEN}
    return None


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        said = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
