"""Results of the commands that need no stream.

Rule: a command has the same result on every transport. Other tasks run between the pieces of a large result, so that
its encoding does not block the event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

from pydantic_core import to_json

from agui_container.engine.service import Service, View
from agui_container.ports import Caller
from agui_container.protocol.commands import Attach, Cancel, Capabilities, Command, Ping, RunsGet, RunsList
from agui_container.runtime.offload import LARGE_BYTES


class CommandResponder:
    """Executes commands on a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @asynccontextmanager
    async def answer(self, command: Command, caller: Caller) -> AsyncIterator[View]:
        """Execute a command and provide its result, a JSON object with camelCase names.

        The bytes of a large result count as in flight until the end of the block.

        Raises:
            AppError: as raised by the engine, for example RUN_NOT_FOUND.
        """
        match command:
            case Cancel():
                yield await self._service.runs.cancel(caller, command.thread_id, command.run_id)
            case RunsList():
                yield {"runs": await self._service.runs.list(caller)}
            case Attach() | RunsGet():
                yield await self._service.runs.find(caller, command.thread_id, command.run_id)
            case Capabilities():
                yield {"capabilities": self._service.capabilities.model_dump(mode="json", by_alias=True)}
            case Ping():
                yield {"pong": True}
            case _:
                async with self._service.threads.answer(caller, command) as view:
                    yield view


async def encode_result(result: Mapping[str, object]) -> bytes:
    """Return a result as JSON."""
    pieces, size = list[bytes](), 0
    for piece in encode_pieces(result):
        pieces.append(piece)
        size += len(piece)
        if size > LARGE_BYTES:
            await asyncio.sleep(0)
            size = 0
    return b"".join(pieces)


def encode_pieces(result: Mapping[str, object]) -> Iterator[bytes]:
    """Encode a JSON object in pieces: its members, and each item of a list by itself."""
    yield b"{"
    for index, (name, value) in enumerate(result.items()):
        yield b"%b%b:" % (b"," if index else b"", to_json(name))
        if isinstance(value, list):
            yield b"["
            yield from (b"%b%b" % (b"," if number else b"", to_json(item)) for number, item in enumerate(value))
            yield b"]"
        else:
            yield to_json(value)
    yield b"}"
