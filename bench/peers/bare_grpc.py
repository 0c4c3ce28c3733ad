"""A bare grpcio server that sends ready messages: ``python -m bench.peers.bare_grpc PORT``."""

import asyncio
import sys
from collections.abc import AsyncIterator

import grpc

from agui_container.transports.gen.kontekst.kontekst_pb2 import RunCommand, RunEvent, TokenDeltaEvent

READY = RunEvent(token=TokenDeltaEvent(text="hello world, ")).SerializeToString()


async def run(commands: AsyncIterator[RunCommand], _: object) -> AsyncIterator[bytes]:
    """Answer ``stream N`` with N messages."""
    async for command in commands:
        for _ in range(int(command.start.prompt.removeprefix("stream "))):
            yield READY
        return


async def main(port: int) -> None:
    """Serve until the process is ended, on grpcio's asyncio server."""
    handler = grpc.stream_stream_rpc_method_handler(run, RunCommand.FromString, bytes)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("kontekst.AgentService", {"Run": handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
