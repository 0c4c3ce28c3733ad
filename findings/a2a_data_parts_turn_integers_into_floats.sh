#!/usr/bin/env bash
# a2a-sdk 1.3.0: every integer in a data part arrives as a float, and long ids arrive as other ids.
#
# A data part carries any JSON value. The SDK keeps it as protobuf's `Value`, whose numbers are all floats of 64 bits. The
# sender already writes 3 as 3.0, and an id of 19 digits is rounded, on the way to the agent and on the way back. JSON and
# Python know integers of any size, and the SDK's helpers for data parts take and return plain Python values, so nothing
# warns. `range(count)` is a TypeError in the agent, and the rounded id is a valid one that belongs to something else.
# Seen: 3 is 3.0 and 1234567890123456789 is 1.2345678901234568e+18, which is 21 less: in the request, the agent and the answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "a2a-sdk[http-server]==1.3.0" 2>/dev/null
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import json
import logging

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers import get_data_parts, new_data_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Role, SendMessageRequest
from starlette.applications import Starlette

logging.disable(logging.CRITICAL)
SENT = {"count": 3, "order": 1234567890123456789}
ROUNDED = {"count": 3.0, "order": 1234567890123456768.0}
received: list[dict] = []
bodies: list[dict] = []


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        received.extend(get_data_parts(context.message.parts))
        await event_queue.enqueue_event(new_data_message(SENT, role=Role.ROLE_AGENT))

    async def cancel(self, context, event_queue):
        raise NotImplementedError


async def keep_body(request: httpx.Request) -> None:
    bodies.append(json.loads(request.content))


async def main() -> None:
    card = AgentCard(
        name="echo",
        description="Sends data.",
        version="1",
        supported_interfaces=[AgentInterface(url="http://echo/", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=False),
    )
    handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)
    transport = httpx.ASGITransport(Starlette(routes=create_jsonrpc_routes(handler, "/")))
    async with httpx.AsyncClient(transport=transport, event_hooks={"request": [keep_body]}) as http:
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        message = new_data_message(SENT, role=Role.ROLE_USER)
        answers = [answer async for answer in client.send_message(SendMessageRequest(message=message))]
    (answer,) = get_data_parts(answers[0].message.parts)
    body = bodies[0]["params"]["message"]["parts"][0]["data"]
    print("sent:    ", SENT, "on the wire:", body)
    print("agent:   ", received[0])
    print("client:  ", answer)
    for data in (body, received[0], answer):
        assert data == ROUNDED and [type(value) for value in data.values()] == [float, float]
        assert int(data["order"]) == SENT["order"] - 21


asyncio.run(main())
PYTHON
echo "as described"
