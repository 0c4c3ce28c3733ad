#!/usr/bin/env bash
# bedrock-agentcore 1.25.0 beside websockets 15.0.1: a socket that is opened with all of its headers repeats its handshake.
#
# `AgentCoreRuntimeClient.generate_ws_connection` returns every header of a handshake (Upgrade, Connection, Host,
# Sec-WebSocket-Key and -Version), to be given as `additional_headers`. `websockets` sends those besides its own, with two
# different keys. RFC 6455 has one of each, and a server made with `websockets` refuses such a request.
# Seen: two keys arrive, and the server answers 426; with the headers of the signature and the session alone it accepts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check bedrock-agentcore==1.25.0 websockets==15.0.1 2>/dev/null
AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b "$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import logging

from bedrock_agentcore.runtime import AgentCoreRuntimeClient
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import InvalidStatus

logging.getLogger("websockets").addHandler(logging.NullHandler())
logging.getLogger("websockets").propagate = False
ARN = "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/local"
HANDSHAKE = {"host", "upgrade", "connection", "sec-websocket-key", "sec-websocket-version"}


async def keys_sent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, found: list[int]) -> None:
    found.append((await reader.readuntil(b"\r\n\r\n")).lower().count(b"sec-websocket-key:"))
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    writer.close()


async def status(url: str, headers: dict[str, str], port: int) -> int:
    try:
        async with connect(url, additional_headers=headers, host="127.0.0.1", port=port, proxy=None):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


async def main() -> None:
    url, headers = AgentCoreRuntimeClient("us-east-1").generate_ws_connection(ARN)
    url = url.replace("wss:", "ws:")
    keys: list[int] = []
    async with await asyncio.start_server(lambda r, w: keys_sent(r, w, keys), "127.0.0.1", 0) as plain:
        await status(url, headers, plain.sockets[0].getsockname()[1])
    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with_all = await status(url, headers, port)
        filtered = {name: value for name, value in headers.items() if name.lower() not in HANDSHAKE}
        without = await status(url, filtered, port)
    print("keys:", keys, "with all headers:", with_all, "without the handshake's own headers:", without)
    assert (keys, with_all, without) == ([2], 426, 101)


asyncio.run(main())
PYTHON
echo "as described"
