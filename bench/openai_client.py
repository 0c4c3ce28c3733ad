"""Cost of reading a chat completions stream: httpx with our own SSE reader, the same with httpx2, and `openai`.

    python -m venv /tmp/bench && /tmp/bench/bin/pip install openai httpx ag-ui-protocol pydantic-core
    /tmp/bench/bin/python bench/openai_client.py

A server in another process sends 2,000 chunks in two ways: each in a write of its own, as a model does, and all at
once, where only the client's own work counts. Every client runs in a fresh process; the figure is its CPU time per
chunk, the median of five streams after one to warm up, and the time its import takes. Decision 0011 has the figures.
"""
# ruff: noqa: PLC0415, S603, T201 - a script of its own that prints, starts itself, and measures imports

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

CHUNKS = 2_000
STREAMS = 5
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}

sys.path.insert(0, str(Path(__file__).parent.parent))


# --- the server -------------------------------------------------------------------------------------------------------


def frame(number: int) -> bytes:
    """One chunk as OpenAI sends it, in HTTP chunked coding."""
    chunk = {
        "id": "chatcmpl-1234567890",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "gpt-4o-mini-2024-07-18",
        "system_fingerprint": "fp_1234567890",
        "choices": [
            {
                "index": 0,
                "delta": {"content": f"word{number} "},
                "logprobs": None,
                "finish_reason": "stop" if number == CHUNKS - 1 else None,
            }
        ],
    }
    return encode_chunk(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def encode_chunk(data: bytes) -> bytes:
    """Return data as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FRAMES = [frame(number) for number in range(CHUNKS)]
END = encode_chunk(b"data: [DONE]\n\n") + encode_chunk(b"")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests on one connection until it closes."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            writer.write(HEAD)
            if b"/single/" in head:
                for one in FRAMES:
                    writer.write(one)
                    await writer.drain()
                    await asyncio.sleep(0.0002)  # so that each is read on its own
            else:
                writer.write(b"".join(FRAMES))
            writer.write(END)
            await writer.drain()
    except asyncio.IncompleteReadError:
        writer.close()


async def serve() -> None:
    """Serve on a free port and print it."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the clients ------------------------------------------------------------------------------------------------------

Read = Callable[[], Awaitable[int]]


async def with_httpx(url: str) -> Read:
    """Read with httpx and our SSE reader; chunks are dicts."""
    import httpx

    return reading(httpx, url)


async def with_httpx2(url: str) -> Read:
    """Read with httpx2, the successor of httpx, in the same way."""
    import httpx2

    return reading(httpx2, url)


def reading(library: object, url: str) -> Read:
    """Read the chunks of one stream as dicts."""
    from pydantic_core import from_json

    from agui_container.models.openai.transport import SseReader

    client = library.AsyncClient(trust_env=False)  # type: ignore[attr-defined]

    async def read() -> int:
        count, sse = 0, SseReader()
        async with client.stream("POST", f"{url}/chat/completions", json=BODY) as response:
            async for data in response.aiter_raw():
                for event in sse.feed(data):
                    if event == b"[DONE]":
                        continue
                    count += bool(from_json(event)["choices"][0]["delta"]["content"])
        return count

    return read


async def with_openai(url: str) -> Read:
    """Read with the vendor's library; chunks are its models."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=url, max_retries=0)

    async def read() -> int:
        count = 0
        async for chunk in await client.chat.completions.create(**BODY):
            count += bool(chunk.choices[0].delta.content)
        return count

    return read


async def with_model(url: str) -> Read:
    """Read with ``OpenAIModel``, from bytes to deltas."""
    from ag_ui.core import UserMessage

    from agui_container.models.openai import OpenAIModel
    from agui_container.ports import Prompt, TextDelta

    model = OpenAIModel("m", url)
    prompt = Prompt("", [UserMessage(id="1", content="go")])

    async def read() -> int:
        return sum([isinstance(delta, TextDelta) async for delta in model.stream(prompt)])

    return read


CLIENTS: Mapping[str, tuple[str, Callable[[str], Awaitable[Read]]]] = {
    "httpx": ("httpx", with_httpx),
    "httpx2": ("httpx2", with_httpx2),
    "openai": ("openai", with_openai),
    "OpenAIModel": ("agui_container.models.openai", with_model),
}


async def measure(name: str, url: str) -> None:
    """Print the CPU microseconds per chunk of one client."""
    read = await CLIENTS[name][1](url)
    costs = []
    for _ in range(STREAMS + 1):
        before = time.process_time()
        count = await read()
        costs.append((time.process_time() - before) / CHUNKS * 1e6)
        if count != CHUNKS:
            raise SystemExit(f"{name} read {count} of {CHUNKS} chunks")
    print(f"{statistics.median(costs[1:]):.1f}")


# --- the comparison ---------------------------------------------------------------------------------------------------


def import_time(module: str) -> str:
    """Return the milliseconds that importing ``module`` adds to a process with the imports of our server."""
    code = (
        "import time, asyncio, anyio, ag_ui.core; t = time.perf_counter();"
        f"import {module}; print((time.perf_counter() - t) * 1e3)"
    )
    times = [float(output([sys.executable, "-c", code])) for _ in range(5)]
    return f"{statistics.median(times):.0f}"


def output(command: list[str]) -> str:
    """Return the output of a program."""
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent).stdout


def compare() -> None:
    """Measure every client against a server of its own process."""
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout is None:
            raise SystemExit("the server has no output")
        port = server.stdout.readline().strip()
        print("client        import ms   us/chunk, one write each   us/chunk, all at once")
        for name, (module, _) in CLIENTS.items():
            costs = [
                output([sys.executable, __file__, name, f"http://127.0.0.1:{port}/{way}/v1"]).strip()
                for way in ("single", "bulk")
            ]
            print(f"{name:12}  {import_time(module):>9}   {costs[0]:>24}   {costs[1]:>21}")
    finally:
        server.terminate()
        server.wait()


def main(arguments: list[str]) -> None:
    """Compare the clients, or be one process of the comparison."""
    if not arguments:
        compare()
    elif arguments == ["serve"]:
        asyncio.run(serve())
    else:
        asyncio.run(measure(arguments[0], arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
