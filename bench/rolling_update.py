"""Rolling update of two replicas behind nginx: what becomes of the open runs, and of runs that begin meanwhile.

    python -m bench.rolling_update postgresql://… redis://…

Each way replaces the first replica while runs of some seconds are open through nginx, and others begin. ``at once``
sends SIGTERM to the replica, and nginx finds out. ``drained`` is what ``deploy/kubernetes`` and a load balancer do: no
new run goes to the replica, its open runs end, and then it gets SIGTERM. A reader that is cut or told SHUTTING_DOWN
asks again for its run, as clients that resume do. nginx asks the other replica where one refuses with 503, because
nothing has begun there.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from bench.server import Contestant, RunningContestant, free_port, ours, running

RUNS = 8
SECONDS = 20
"""Runs that are open at the beginning, and runs that begin during the update; how long each of them takes."""

NAMES = count(1)
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  upstream agui {{ {servers} }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://agui; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 60s;
      proxy_next_upstream error http_503 non_idempotent;
    }}
  }}
}}
"""


class Nginx:
    """nginx in front of replicas."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._config = folder / "nginx.conf"
        self._folder = folder

    def write(self, *ports: int) -> None:
        """Write the configuration for replicas on these ports."""
        servers = " ".join(f"server 127.0.0.1:{port} max_fails=0;" for port in ports)
        self._config.write_text(NGINX.format(folder=self._folder, servers=servers, port=self.port))

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run nginx."""
        command = ("nginx", "-c", str(self._config), "-p", str(self._folder))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - nginx of the machine
            try:
                yield process
            finally:
                process.terminate()


def body(name: str) -> dict[str, object]:
    """A run of its own thread."""
    message = {"id": "m1", "role": "user", "content": f"wait {SECONDS}"}
    return {"threadId": name, "runId": name, "messages": [message], "protocolVersion": "1.0"}


async def ending(http: httpx.AsyncClient, port: int, name: str) -> str:
    """Return how a stream of a run ended."""
    last = "refused"
    try:
        async with http.stream("POST", f"http://127.0.0.1:{port}/invocations", json=body(name)) as answer:
            if answer.status_code != httpx.codes.OK:
                return f"HTTP {answer.status_code}"
            last = "cut"
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    event = json.loads(line[5:])
                    is_end = event["type"] in {"RUN_FINISHED", "RUN_ERROR"}
                    last = event.get("code") or event["type"] if is_end else last
    except httpx.TransportError:
        return last
    return last


async def until_quiet(http: httpx.AsyncClient, replica: RunningContestant) -> None:
    """Wait until a replica has no open run, as the hook of ``deploy/kubernetes`` does."""
    while (await http.get(f"http://127.0.0.1:{replica.port}/ping")).json()["status"] != "Healthy":  # noqa: ASYNC110 - HTTP
        await asyncio.sleep(0.2)


async def measure(contestant: Contestant, *, is_drained: bool) -> None:
    """Replace one replica of two, and print the ends of the runs."""
    with TemporaryDirectory() as folder, running(contestant, contestant) as (old, other):
        os.chmod(folder, 0o755)  # noqa: PTH101, S103 - for the workers of nginx
        proxy = Nginx(Path(folder))
        proxy.write(old.port, other.port)
        limits = httpx.Limits(max_connections=None)
        with proxy.serving() as nginx:
            async with httpx.AsyncClient(timeout=120, limits=limits, trust_env=False) as http:
                for port in (old.port, other.port, proxy.port):
                    await ready(http, port)
                names = [f"rolling-{os.getpid()}-{next(NAMES)}" for _ in range(2 * RUNS)]
                streams = [asyncio.create_task(ending(http, proxy.port, name)) for name in names[:RUNS]]
                await asyncio.sleep(2)
                if is_drained:
                    proxy.write(other.port)
                    nginx.send_signal(signal.SIGHUP)
                    await asyncio.sleep(1)
                streams += [
                    asyncio.create_task(later(http, proxy.port, name, at)) for at, name in enumerate(names[RUNS:])
                ]
                if is_drained:
                    await until_quiet(http, old)
                os.kill(old.pid, signal.SIGTERM)
                ends = await asyncio.gather(*streams)
                again = [
                    await ending(http, other.port, name)
                    for name, end in zip(names, ends, strict=True)
                    if end != "RUN_FINISHED"
                ]
    way = "drained" if is_drained else "at once"
    print(f"{way}: open {Counter(ends[:RUNS])} begun meanwhile {Counter(ends[RUNS:])} asked again {Counter(again)}")  # noqa: T201


async def later(http: httpx.AsyncClient, port: int, name: str, at: int) -> str:
    """Begin a run some time into the update."""
    await asyncio.sleep(at * 0.2)
    return await ending(http, port, name)


async def ready(http: httpx.AsyncClient, port: int) -> None:
    """Wait until a server is ready."""
    for _ in range(1_000):
        try:
            if (await http.get(f"http://127.0.0.1:{port}/ping")).is_success:
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.1)


async def main(arguments: Sequence[str]) -> None:
    """Measure both ways."""
    store, bus = arguments
    settings = {"AGUI_STORE": store, "AGUI_BUS": bus}
    assistant = ours("assistant")
    contestant = replace(assistant, environment={**assistant.environment, **settings})
    for is_drained in (False, True):
        await measure(contestant, is_drained=is_drained)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
