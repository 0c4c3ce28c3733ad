#!/usr/bin/env bash
# mcp 2.3.0: a tool whose argument is `str | None` refuses every text that is a JSON object or list, and takes the text "null" for no text.
#
# The tool's schema says `string` or `null`, and the client sends a string. The server decodes a string as JSON before it
# validates, unless the annotation is exactly `str`, and keeps the decoded value if that is not a number, a boolean or a
# string. So a model that saves a document of JSON reads that its string is no valid string. With `str` all texts arrive as
# they were sent. The function decides this by its annotation alone, and the schema does not show it.
# Seen: `str`: 4 texts unchanged; `str | None`: "plain" unchanged, "null" is None, an object and a list are refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 2>/dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import logging

from mcp.client import Client
from mcp.server import MCPServer

logging.disable(logging.CRITICAL)
server = MCPServer("server")


@server.tool()
def save(text: str) -> str:
    return repr(text)


@server.tool()
def save_optional(text: str | None) -> str:
    return repr(text)


async def main() -> None:
    results = {}
    async with Client(server) as client:
        schemas = {tool.name: tool.input_schema["properties"]["text"] for tool in (await client.list_tools()).tools}
        for tool in ("save", "save_optional"):
            for text in ("plain", "null", '{"a": 1}', '["a"]'):
                result = await client.call_tool(tool, {"text": text})
                results[tool, text] = "refused" if result.is_error else result.content[0].text
                print(tool, text, "gives", result.content[0].text.splitlines()[-1 if not result.is_error else 2])
    print(schemas["save_optional"])
    assert schemas["save"]["type"] == "string"
    assert schemas["save_optional"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert list(results.values())[:4] == ["'plain'", "'null'", "'{\"a\": 1}'", "'[\"a\"]'"]
    assert list(results.values())[4:] == ["'plain'", "None", "refused", "refused"]


asyncio.run(main())
PYTHON
echo "as described"
