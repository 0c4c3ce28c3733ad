"""Clients that poll a session where nothing happens cost next to nothing."""

import asyncio
import os
import time
from pathlib import Path

import httpx
import pytest

from tests.engine.doubles import Json
from tests.sockets.process import Server

CLIENTS = 200
SETTLING = 2.0
SECONDS = 8.0
MOST_CPU = 0.1
"""Of one core, for all clients together. Answered at once, they would be 1,000 requests a second."""


def cpu_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def poll(http: httpx.AsyncClient, held: Json, until: float) -> int:
    """Poll as Roboto's package does, five times a second. Gives the number of requests."""
    count = 0
    while time.monotonic() < until:
        path = f"/v1/ai/threads/{held['thread_id']}/delta"
        try:
            async with asyncio.timeout(until - time.monotonic()):
                answer = await http.get(path, params={"next_token": held["continuation_token"]})
        except TimeoutError:
            break
        held = {**held, "continuation_token": answer.json()["data"]["continuation_token"]}
        count += 1
        await asyncio.sleep(0.2)
    return count


async def idle(url: str, text: str, pid: int) -> tuple[float, int]:
    """CPU per second, and requests, once every client has what there is."""
    body = {"messages": [{"role": "user", "content": [{"text": text}]}]}
    limits = httpx.Limits(max_connections=CLIENTS + 10, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60) as http:
        records = [(await http.post("/v1/ai/threads", json=body)).json()["data"] for _ in range(CLIENTS)]
        await asyncio.gather(*(poll(http, record, time.monotonic() + SETTLING) for record in records))
        held = [(await http.get(f"/v1/ai/threads/{record['thread_id']}")).json()["data"] for record in records]
        await asyncio.gather(*(poll(http, record, time.monotonic() + SETTLING) for record in held))
        before, start = cpu_seconds(pid), time.monotonic()
        counts = await asyncio.gather(*(poll(http, record, start + SECONDS) for record in held))
        return (cpu_seconds(pid) - before) / (time.monotonic() - start), sum(counts)


@pytest.mark.parametrize("text", ["wait 60", "stream 1"], ids=["while the agent is silent", "while it rests"])
async def test_200_idle_clients_cost_next_to_nothing(text: str) -> None:
    with Server(AGUI_AGENT="assistant", AGUI_ROBOTO="on") as server:
        cpu, requests = await idle(f"http://127.0.0.1:{server.port}", text, server._process.pid)
    print(f"cpu={cpu:.4f} requests={requests}")  # noqa: T201 - what docs/roboto.md says
    assert requests <= 2 * CLIENTS
    assert cpu < MOST_CPU
