"""Results of the commands that need no stream.

Rule: a command has the same result on every transport. Other tasks run between the pieces of a large result, so that
its encoding does not block the event loop.
"""

import asyncio
from collections.abc import Iterator, Mapping

from pydantic_core import to_json

from agui_container.engine.engine import Engine
from agui_container.engine.views import View
from agui_container.ports import Caller
from agui_container.threads import LARGE_BYTES
from agui_core.commands import (
    Attach,
    Cancel,
    Capabilities,
    Command,
    FileCommand,
    Ping,
    RunsGet,
    RunsList,
)

THREAD = "/threads/{threadId}"
THREAD_ROUTES = (
    ("/threads", "GET", "threads.list"),
    (THREAD, "GET", "threads.get"),
    (THREAD, "PATCH", "threads.rename"),
    (THREAD, "DELETE", "threads.delete"),
    (f"{THREAD}/delta", "GET", "threads.delta"),
    (f"{THREAD}/fork", "POST", "threads.fork"),
    (f"{THREAD}/messages/{{messageId}}/feedback", "POST", "threads.feedback"),
)
"""Path and method of each command of threads that is answered as JSON."""


class CommandResponder:
    def __init__(self, service: Engine) -> None:
        self._service = service

    async def answer(self, command: Command, caller: Caller) -> View:  # noqa: PLR0911 - one for each kind
        if isinstance(command, FileCommand):
            return await self._service.files.answer(caller, command)
        match command:
            case Cancel():
                return await self._service.runs.cancel(caller, command.thread_id, command.run_id)
            case RunsList():
                return {"runs": await self._service.runs.list(caller)}
            case Attach() | RunsGet():
                return await self._service.runs.find(caller, command.thread_id, command.run_id)
            case Capabilities():
                return {"capabilities": self._service.capabilities.model_dump(mode="json", by_alias=True)}
            case Ping():
                return {"pong": True}
            case _:
                return await self._service.threads.answer(caller, command)


async def encode_result(result: Mapping[str, object]) -> bytes:
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
