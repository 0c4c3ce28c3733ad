"""CPU per message over gRPC, beside a bare grpcio server that sends ready messages: ``python -m bench.grpc_stream``.

Both servers are processes of their own and are measured in one run by their CPU time, with the same client. The goal is
at most three times the CPU of the bare server per message.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from agui_container.transports.grpc.gen.kontekst.kontekst_pb2 import (
    RunCommand,
    RunEvent,
    StartRunCommand,
    TokenDeltaEvent,
)

ROOT = Path(__file__).parents[1]
RUN = "/kontekst.AgentService/Run"
TICKS = os.sysconf("SC_CLK_TCK")
TEXT = "hello world, "


def bare(port: int) -> None:
    """Serve ``prompt`` messages that are ready, with grpcio and nothing else."""

    def run(commands: Iterator[RunCommand], _: grpc.ServicerContext) -> Iterator[bytes]:
        count = int(next(commands).start.prompt)
        ready = RunEvent(token=TokenDeltaEvent(text=TEXT)).SerializeToString()
        for _ in range(count):
            yield ready

    handler = grpc.stream_stream_rpc_method_handler(run, RunCommand.FromString, bytes)
    server = grpc.server(ThreadPoolExecutor(256))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("kontekst.AgentService", {"Run": handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    print("ready", flush=True)  # noqa: T201 - the parent waits for it
    server.wait_for_termination()


def cpu(process: subprocess.Popen[str]) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def read(channel: grpc.Channel, prompt: str) -> int:
    """Read one stream; how many messages it had."""
    call = channel.stream_stream(RUN, RunCommand.SerializeToString, bytes)
    return sum(1 for _ in call(iter([RunCommand(start=StartRunCommand(prompt=prompt))]), timeout=300))


def measured(process: subprocess.Popen[str], port: int, prompt: str, streams: int) -> tuple[float, float]:
    """CPU microseconds per message, and messages per second."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, ThreadPoolExecutor(streams) as pool:
        read(channel, prompt)
        before, begun = cpu(process), time.perf_counter()
        count = sum(pool.map(lambda _: read(channel, prompt), range(streams)))
        seconds = time.perf_counter() - begun
        return (cpu(process) - before) / count * 1e6, count / seconds


def main() -> None:
    """Measure both, and print a table."""
    parser = argparse.ArgumentParser(description="CPU per message over gRPC")
    parser.add_argument("--bare", type=int, help="serve ready messages on this port, as the process that is measured")
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 20])
    parser.add_argument("--port", type=int, default=18_080)
    asked = parser.parse_args()
    if asked.bare:
        bare(asked.bare)
        return
    environment = {**os.environ, "AGUI_PORT": str(asked.port), "AGUI_HOST": "127.0.0.1"}
    ours = subprocess.Popen(
        [sys.executable, "-m", "agui_container", "serve"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    other = subprocess.Popen(  # noqa: S603 - as above
        [sys.executable, "-m", "bench.grpc_stream", "--bare", str(asked.port + 1)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert ours.stderr  # noqa: S101 - it is piped
        assert other.stdout  # noqa: S101 - it is piped
        ours.stderr.readline()
        other.stdout.readline()
        print("| streams | server | CPU µs per message | messages/s |\n|---|---|---|---|")  # noqa: T201 - the result
        for streams in asked.streams:
            for name, process, port, prompt in (
                ("agui-container", ours, asked.port, f"stream {asked.messages}"),
                ("bare grpcio", other, asked.port + 1, str(asked.messages)),
            ):
                each, rate = measured(process, port, prompt, streams)
                print(f"| {streams} | {name} | {each:.1f} | {rate:.0f} |")  # noqa: T201 - the result
    finally:
        for process in (ours, other):
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
